"""Do deletion results hold for a copy trained on masked texts?"""
