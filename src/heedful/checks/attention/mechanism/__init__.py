"""Where do attention and influence diverge?"""
