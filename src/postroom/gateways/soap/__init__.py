"""SOAP: messages of WSDL ports, sent and received, with WS-Security as a policy requires."""
