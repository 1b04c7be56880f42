"""A functions host for development: runs an Azure Functions Python v2 app on Microsoft's runtime package.

Queue, timer and HTTP triggers follow the rules of the real host; `python -m local.functions_host --help` starts one.
"""
