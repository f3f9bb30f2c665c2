#!/usr/bin/env python3
"""Writes a SAM template as CloudFormation gets it: scripts/transform.py template.yaml [GIVEN] > build/transformed.json

It runs the translator that the SAM CLI brings (aws-sam-translator, in build/tools/venv) and calls nobody. GIVEN is JSON:
{"code": "s3://…", "parameters": {…}}, where `sam package` would have put the functions' code and what parameters differ
from their defaults.
"""
import json
import logging
import os
import sys
from types import SimpleNamespace

os.environ.setdefault("AWS_DEFAULT_REGION", "us-east-1")  # the translator wants to know a partition

from samtranslator.translator.transform import transform  # noqa: E402
from samtranslator.yaml_helper import yaml_parse  # noqa: E402


def main(path, given="{}"):
    given = json.loads(given)
    logging.disable(logging.CRITICAL)
    with open(path, encoding="utf-8") as file:
        template = yaml_parse(file.read())
    for resource in template["Resources"].values():
        if resource["Type"] == "AWS::Serverless::Function":
            resource["Properties"]["CodeUri"] = given.get("code", "s3://bucket/code")
    # No managed policy of AWS is looked up: no function may ask for one.
    json.dump(transform(template, given.get("parameters", {}), SimpleNamespace(load=lambda: {})), sys.stdout, indent=1, default=str)


if __name__ == "__main__":
    main(*sys.argv[1:])
