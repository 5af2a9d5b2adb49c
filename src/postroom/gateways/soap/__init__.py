"""SOAP: messages of ports that a WSDL describes, sent and taken in, with the protection that a policy asks for."""
