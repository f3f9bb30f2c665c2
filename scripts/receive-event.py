#!/usr/bin/env python3
"""Takes what waits in a queue of the local stack, and prints it as the event that the queue's trigger would hand over:

    scripts/receive-event.py EventQueue | scripts/sam-local.sh invoke ProcessorFunction -e -

For a stack whose own triggers rest (dakghar dev --no-triggers): `sam local` has none, so the messages are deleted here.
DAKGHAR_LOCAL_URL names the stack where it is not at http://127.0.0.1:8081. An empty queue is an error.
"""

import json
import os
import sys
import urllib.request

STACK = os.environ.get("DAKGHAR_LOCAL_URL", "http://127.0.0.1:8081").rstrip("/")
BATCH = 10  # what a trigger hands over at most, and what a queue gives at most at once


def ask(action: str, arguments: dict) -> dict:
    """Makes a call of SQS. The local stack checks no signature."""
    headers = {"X-Amz-Target": f"AmazonSQS.{action}", "Content-Type": "application/x-amz-json-1.0"}
    request = urllib.request.Request(STACK + "/", json.dumps(arguments).encode(), headers)
    with urllib.request.urlopen(request, timeout=10) as answer:
        return json.loads(answer.read() or b"{}")


def queue(name: str) -> tuple[str, str, str]:
    """The address, the ARN and the Region of a queue, by its name in the template."""
    with urllib.request.urlopen(STACK + "/_dakghar/stack", timeout=10) as answer:
        resources = json.load(answer)["resources"]
    if name not in resources:
        sys.exit(f"receive-event: the template has no {name}")
    arn = resources[name]["attributes"]["Arn"]
    return resources[name]["ref"], arn, arn.split(":")[3]


def record(message: dict, arn: str, region: str) -> dict:
    """A message as a trigger hands it over; events/queue-batch.json is one."""
    return {
        "messageId": message["MessageId"],
        "receiptHandle": message["ReceiptHandle"],
        "body": message["Body"],
        "attributes": message["Attributes"],
        "messageAttributes": {},
        "md5OfBody": message["MD5OfBody"],
        "eventSource": "aws:sqs",
        "eventSourceARN": arn,
        "awsRegion": region,
    }


def main(name: str) -> None:
    url, arn, region = queue(name)
    wanted = {"QueueUrl": url, "MaxNumberOfMessages": BATCH, "WaitTimeSeconds": 2, "AttributeNames": ["All"]}
    messages = ask("ReceiveMessage", wanted).get("Messages", [])
    if not messages:
        sys.exit(f"receive-event: nothing waits in {name}")
    for message in messages:
        ask("DeleteMessage", {"QueueUrl": url, "ReceiptHandle": message["ReceiptHandle"]})
    json.dump({"Records": [record(message, arn, region) for message in messages]}, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1])
