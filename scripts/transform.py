#!/usr/bin/env python3
"""Writes a SAM template as CloudFormation gets it: scripts/transform.py template.yaml > build/transformed.json

It runs the transform that the SAM CLI brings (aws-sam-translator, in build/tools/venv) and calls nobody. Where code will
lie is not known before a deploy, so every function's is at one made-up place.
"""
import json
import os
import sys
from types import SimpleNamespace

os.environ.setdefault("AWS_DEFAULT_REGION", "us-east-1")  # the transform wants to know a partition

from samtranslator.translator.transform import transform  # noqa: E402
from samtranslator.yaml_helper import yaml_parse  # noqa: E402


def main(path):
    with open(path, encoding="utf-8") as file:
        template = yaml_parse(file.read())
    for resource in template["Resources"].values():
        if resource["Type"] == "AWS::Serverless::Function":
            resource["Properties"]["CodeUri"] = "s3://bucket/code"
    # No managed policy of AWS is looked up: no function may ask for one.
    json.dump(transform(template, {}, SimpleNamespace(load=lambda: {})), sys.stdout, indent=1, default=str)


if __name__ == "__main__":
    main(*sys.argv[1:])
