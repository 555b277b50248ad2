"""Writes answers of AWS as they come over the wire, by the service models of botocore."""

import json
from datetime import datetime
from functools import cache
from typing import Any
from xml.sax.saxutils import escape

import botocore.session


def ec2_answer(action: str, fields: dict[str, Any]) -> bytes:
    """An answer of EC2 in its Query protocol's XML."""
    body = _members(_model().operation_model(action).output_shape, fields)
    name = f"{action}Response"
    space = "http://ec2.amazonaws.com/doc/2016-11-15/"
    return f'<?xml version="1.0"?><{name} xmlns="{space}">{body}</{name}>'.encode()


def ec2_error(code: str) -> bytes:
    """An error of EC2; the words name an account, as the real ones do."""
    words = "User: arn:aws:iam::123456789012:user/night is not authorized"
    error = f"<Error><Code>{code}</Code><Message>{words}</Message></Error>"
    return f"<Response><Errors>{error}</Errors><RequestID>1</RequestID></Response>".encode()


def json_error(code: str) -> bytes:
    """An error of a service that speaks JSON."""
    return json.dumps({"__type": code, "message": "arn:aws:iam::123456789012"}).encode()


@cache
def _model() -> Any:
    session = botocore.session.Session()
    return session.get_service_model("ec2")


def _members(shape: Any, fields: dict[str, Any]) -> str:
    found = []
    for name, member in shape.members.items():
        if name in fields:
            tag = member.serialization.get("name", name)
            found.append(f"<{tag}>{_value(member, fields[name])}</{tag}>")
    unknown = fields.keys() - shape.members.keys()
    assert not unknown, f"{shape.name} has no {unknown}"
    return "".join(found)


def _value(shape: Any, value: Any) -> str:
    if isinstance(value, dict):
        return _members(shape, value)
    if isinstance(value, list):
        return "".join(f"<item>{_value(shape.member, each)}</item>" for each in value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%dT%H:%M:%S.000Z")
    return escape(str(value))
