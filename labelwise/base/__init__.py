"""Errors, files, parallel jobs, settings, texts, devices, the console: for all folders.

It imports no other folder of labelwise.
"""
