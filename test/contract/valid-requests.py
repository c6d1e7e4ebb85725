"""Validates SOAP requests by the schema of a WSDL as libxml2 reads it.

On stdin: {"wsdl": text, "requests": [text, ...]}; on stdout for each request what is wrong, or null.
"""

import json
import sys

from lxml import etree

SCHEMA = "{http://www.w3.org/2001/XMLSchema}schema"


def wrong(schema, request):
    (body,) = etree.fromstring(request.encode())
    (content,) = body
    if etree.QName(body).localname != "Body":
        return "it has no Body"
    return None if schema.validate(content) else str(schema.error_log)


task = json.load(sys.stdin)
# Written and read again: libxml2 would not see the prefixes that are declared further out.
schema = etree.XMLSchema(etree.XML(etree.tostring(etree.XML(task["wsdl"].encode()).find(f".//{SCHEMA}"))))
json.dump([wrong(schema, request) for request in task["requests"]], sys.stdout)
