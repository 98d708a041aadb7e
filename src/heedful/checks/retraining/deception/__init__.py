"""Can attention be trained to hide the decisive words?"""
