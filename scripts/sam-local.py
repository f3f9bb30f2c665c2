"""The half of scripts/sam-local.sh that needs more than a shell.

    sam-local.py STACK_URL BUILD_DIR ARCHITECTURE BRIDGE sam local ACTION ...

It asks the local stack at STACK_URL for its key and addresses, writes local.yaml and local.env.json into BUILD_DIR, lets
containers reach the stack, and becomes the given command. It runs in the SAM CLI's own virtual environment, for the
YAML reader that knows CloudFormation's tags.
"""

import asyncio
import errno
import ipaddress
import json
import os
import pathlib
import socket
import sys
import urllib.parse
import urllib.request

from samcli.yamlhelper import yaml_dump, yaml_parse

DESKTOP = "host.docker.internal"  # what a container of Docker Desktop calls this machine
QUEUES = {"EVENT_QUEUE_URL", "DELIVERY_QUEUE_URL"}
ENDPOINTS = ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_DYNAMODB")


def local_template(text: str, architecture: str) -> str:
    """The built template for this machine: `sam local` sets only variables that the template declares, and runs the
    image of the architecture that it names. What is deployed declares no endpoint, and arm64."""
    template = yaml_parse(text)
    for resource in template["Resources"].values():
        if resource["Type"] == "AWS::Serverless::Function":
            properties = resource["Properties"]
            properties["Architectures"] = [architecture]
            properties["Environment"]["Variables"].update(dict.fromkeys(ENDPOINTS, ""))
    return yaml_dump(template)


def local_environment(text: str, host: str, aws: int, dynamodb: int, key: str) -> str:
    """The committed environment with the running stack's addresses, as containers see them, and its key."""
    environment = json.loads(text)
    for variables in environment.values():
        variables["AWS_ENDPOINT_URL"] = f"http://{host}:{aws}"
        variables["AWS_ENDPOINT_URL_DYNAMODB"] = f"http://{host}:{dynamodb}"
        for queue in variables.keys() & QUEUES:
            path = urllib.parse.urlsplit(variables[queue]).path
            variables[queue] = f"http://{host}:{aws}{path}"
        if "DATA_KEY_ID" in variables:
            variables["DATA_KEY_ID"] = key
    return json.dumps(environment, indent=2) + "\n"


def this_machine(bridge: str) -> str | None:
    """The bridge's address, or of a network its first one, which the bridge has by default; None where it is not on
    this machine, as with Docker Desktop."""
    network = ipaddress.ip_network(bridge)
    address = str(network[min(1, network.num_addresses - 1)])
    try:
        socket.create_server((address, 0)).close()
    except OSError:
        return None
    return address


async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
    except OSError:
        pass
    finally:
        writer.close()


async def forward(address: str, ports: set[int]) -> None:
    """Takes connections on the bridge's address to the loopback interface, where the local stack listens and nowhere
    else. Where the port is taken, the server listens on every interface by itself, as DynamoDB Local does on Java."""

    def connect(port: int):
        async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                inner_reader, inner_writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                writer.close()
                return
            await asyncio.gather(copy(reader, inner_writer), copy(inner_reader, writer))

        return accept

    for port in ports:
        try:
            await asyncio.start_server(connect(port), address, port)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise


async def forward_for(parent: int, address: str, ports: set[int], ready: int) -> None:
    await forward(address, ports)
    os.write(ready, b"!")
    os.close(ready)
    while os.getppid() == parent:
        await asyncio.sleep(0.5)


def start_forwarding(address: str, ports: set[int]) -> None:
    """Leaves a child that forwards for as long as this process lives, which keeps its id when it becomes a command."""
    parent, (readable, writable) = os.getpid(), os.pipe()
    if os.fork() == 0:
        os.close(readable)
        asyncio.run(forward_for(parent, address, ports, writable))
        os._exit(0)
    os.close(writable)
    if not os.read(readable, 1):
        sys.exit("sam-local: the local stack cannot be forwarded to containers")


def main(url: str, build: str, architecture: str, bridge: str, *command: str) -> None:
    with urllib.request.urlopen(url + "/_dakghar/stack", timeout=5) as answer:
        stack = json.load(answer)
    aws = urllib.parse.urlsplit(stack["aws"]).port
    dynamodb = aws if stack["dynamodb"] == "embedded" else urllib.parse.urlsplit(stack["dynamodb"]).port
    address = this_machine(bridge)
    directory = pathlib.Path(build)
    template = (directory / "template.yaml").read_text()
    environment = pathlib.Path("infra/sam-local.env.json").read_text()
    key = stack["outputs"]["DataKeyArn"]
    (directory / "local.yaml").write_text(local_template(template, architecture))
    # By number where it is known: to a host with a name, the SDK's S3 client puts the bucket's before it.
    (directory / "local.env.json").write_text(local_environment(environment, address or DESKTOP, aws, dynamodb, key))
    if address:
        start_forwarding(address, {aws, dynamodb})
    os.execv(command[0], command)


if __name__ == "__main__":
    main(*sys.argv[1:])
