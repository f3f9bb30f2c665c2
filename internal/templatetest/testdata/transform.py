"""Runs SAM's own translator, the one that CloudFormation runs, over a template as `sam package` leaves it.

Reads {"code": "s3://...", "parameters": {...}} on standard input and prints the transformed template in JSON. The path of
the template is its argument. Nobody is asked: managed policies, for which the translator would call IAM, do not occur.
"""

import json
import logging
import sys

from samtranslator.translator.transform import transform
from samtranslator.yaml_helper import yaml_parse


class NoManagedPolicies:
    def load(self):
        return {}


logging.disable(logging.CRITICAL)
given = json.load(sys.stdin)
with open(sys.argv[1], encoding="utf-8") as file:
    template = yaml_parse(file.read())
for resource in template["Resources"].values():
    if resource["Type"] == "AWS::Serverless::Function":
        resource["Properties"]["CodeUri"] = given["code"]
json.dump(transform(template, given["parameters"], NoManagedPolicies()), sys.stdout)
