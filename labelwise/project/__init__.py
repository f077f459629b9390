"""A project: the folder with project.yml, dvc.yaml and configs that commands run in; dvc.yaml is made here, too.

It imports no other folder of labelwise.
"""
