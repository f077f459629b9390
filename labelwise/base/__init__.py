"""What every folder may use, and no stage: errors, files, parallel jobs, settings, texts, devices, the console.

It imports no other folder of labelwise.
"""
