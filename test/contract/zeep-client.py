"""A SOAP client on zeep: one call as a line of JSON on stdin, its outcome as a line of JSON on stdout.

Argument 1 is the address of the WSDL, argument 2 the name of the service. Longs are text in JSON, bytes are
{"base64": ...}, times are text as in ISO 8601, and what the schema says nothing of is XML. Every answer must also be valid
by the schema as libxml2 reads it.
"""

import base64
import datetime
import json
import sys

from lxml import etree
from requests import Session
from zeep import Client, Plugin
from zeep.exceptions import Fault
from zeep.helpers import serialize_object
from zeep.transports import Transport

SCHEMA = "{http://www.w3.org/2001/XMLSchema}schema"


class ValidAnswers(Plugin):
    def __init__(self, wsdl):
        # Written and read again: libxml2 would not see the prefixes that are declared further out.
        self.schema = etree.XMLSchema(etree.XML(etree.tostring(etree.XML(wsdl).find(f".//{SCHEMA}"))))

    def ingress(self, envelope, http_headers, operation):
        (content,) = envelope.find("{*}Body")
        if etree.QName(content).localname != "Fault":
            self.schema.assertValid(content)
        return envelope, http_headers


def told(value):
    """The value for JSON."""
    if isinstance(value, bytes):
        return {"base64": base64.b64encode(value).decode()}
    if isinstance(value, datetime.datetime):
        return value.isoformat()
    if isinstance(value, etree._Element):
        return etree.tostring(value).decode()
    if isinstance(value, int):
        return str(value)
    if isinstance(value, list):
        return [told(each) for each in value]
    if isinstance(value, dict):
        return {name: told(each) for name, each in value.items()}
    return value


def main():
    session = Session()
    session.trust_env = False
    address = sys.argv[1]
    wsdl = session.get(address).content
    client = Client(address, transport=Transport(session=session), plugins=[ValidAnswers(wsdl)])
    for line in sys.stdin:
        call = json.loads(line)
        session.headers.pop("Authorization", None)
        session.headers.update(call["headers"])
        operation = getattr(client.bind(sys.argv[2], call["port"]), call["operation"])
        try:
            outcome = {"result": told(serialize_object(operation(**call["fields"]), dict))}
        except Fault as fault:
            outcome = {"fault": {"code": fault.code, "message": fault.message}}
        except Exception as error:
            outcome = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(outcome), flush=True)


main()
