"""The public rules of event logs, as schemas: the order of elements and the types of their attributes in XES (IEEE
1849), and the members of a document in OCEL 2.0."""

from __future__ import annotations

from typing import Any

XES = """
<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" xmlns="http://www.xes-standard.org/"
    targetNamespace="http://www.xes-standard.org/" elementFormDefault="qualified">
  <xs:element name="log">
    <xs:complexType>
      <xs:sequence>
        <xs:element name="extension" minOccurs="0" maxOccurs="unbounded">
          <xs:complexType>
            <xs:attribute name="name" type="xs:NCName" use="required"/>
            <xs:attribute name="prefix" type="xs:NCName" use="required"/>
            <xs:attribute name="uri" type="xs:anyURI" use="required"/>
          </xs:complexType>
        </xs:element>
        <xs:element name="global" minOccurs="0" maxOccurs="unbounded">
          <xs:complexType>
            <xs:group ref="said" maxOccurs="unbounded"/>
            <xs:attribute name="scope" type="xs:NCName" use="required"/>
          </xs:complexType>
        </xs:element>
        <xs:element name="classifier" minOccurs="0" maxOccurs="unbounded">
          <xs:complexType>
            <xs:attribute name="name" type="xs:NCName" use="required"/>
            <xs:attribute name="scope" type="xs:NCName"/>
            <xs:attribute name="keys" type="xs:token" use="required"/>
          </xs:complexType>
        </xs:element>
        <xs:group ref="said" minOccurs="0" maxOccurs="unbounded"/>
        <xs:element name="trace" minOccurs="0" maxOccurs="unbounded">
          <xs:complexType>
            <xs:sequence>
              <xs:group ref="said" minOccurs="0" maxOccurs="unbounded"/>
              <xs:element name="event" minOccurs="0" maxOccurs="unbounded">
                <xs:complexType><xs:group ref="said" minOccurs="0" maxOccurs="unbounded"/></xs:complexType>
              </xs:element>
            </xs:sequence>
          </xs:complexType>
        </xs:element>
      </xs:sequence>
      <xs:attribute name="xes.version" type="xs:decimal" use="required"/>
      <xs:attribute name="xes.features" type="xs:token"/>
    </xs:complexType>
  </xs:element>
  <xs:group name="said">
    <xs:choice>
      <xs:element name="string"><xs:complexType>
        <xs:attribute name="key" type="xs:Name" use="required"/>
        <xs:attribute name="value" type="xs:string" use="required"/>
      </xs:complexType></xs:element>
      <xs:element name="date"><xs:complexType>
        <xs:attribute name="key" type="xs:Name" use="required"/>
        <xs:attribute name="value" type="xs:dateTime" use="required"/>
      </xs:complexType></xs:element>
      <xs:element name="int"><xs:complexType>
        <xs:attribute name="key" type="xs:Name" use="required"/>
        <xs:attribute name="value" type="xs:long" use="required"/>
      </xs:complexType></xs:element>
    </xs:choice>
  </xs:group>
</xs:schema>
"""


def _listed(properties: dict[str, Any], optional: tuple[str, ...] = ()) -> dict[str, Any]:
    required = [name for name in properties if name not in optional]
    item = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
    return {"type": "array", "items": item}


_TEXT = {"type": "string"}
_KIND = {"enum": ["string", "time", "integer", "float", "boolean"]}
_TYPES = _listed({"name": _TEXT, "attributes": _listed({"name": _TEXT, "type": _KIND})})
_RELATED = _listed({"objectId": _TEXT, "qualifier": _TEXT})
_TIME = {"type": "string", "pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$"}
_OBJECTS = {
    "id": _TEXT,
    "type": _TEXT,
    "attributes": _listed({"name": _TEXT, "time": _TIME, "value": {}}),
    "relationships": _RELATED,
}
_EVENTS = {
    "id": _TEXT,
    "type": _TEXT,
    "time": _TIME,
    "attributes": _listed({"name": _TEXT, "value": {}}),
    "relationships": _RELATED,
}
OCEL: dict[str, Any] = {
    "type": "object",
    "properties": {
        "objectTypes": _TYPES,
        "eventTypes": _TYPES,
        "objects": _listed(_OBJECTS, ("attributes", "relationships")),
        "events": _listed(_EVENTS, ("attributes", "relationships")),
    },
    "required": ["objectTypes", "eventTypes", "objects", "events"],
    "additionalProperties": False,
}
