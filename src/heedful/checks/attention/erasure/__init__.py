"""Do the highest attention weights decide the prediction?"""
