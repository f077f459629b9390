"""A project: the folder with project.yml, dvc.yaml and configs that commands run in; written anew, or upgraded.

It imports common.
"""
