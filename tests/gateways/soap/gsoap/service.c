/* Serves the supplier's interface at a free port, which is its first line; then a line for each order. */
#ifdef RELIABLE
#include "wsrmapi.h"
int SOAP_ENV__Fault(struct soap *soap, char *code, char *string, char *actor, struct SOAP_ENV__Detail *detail,
                    struct SOAP_ENV__Code *c, struct SOAP_ENV__Reason *r, char *node, char *role,
                    struct SOAP_ENV__Detail *d) {
    (void)code, (void)string, (void)actor, (void)detail, (void)c, (void)r, (void)node, (void)role, (void)d;
    return soap_send_empty_response(soap, SOAP_OK);
}
#else
#include "soapH.h"
#endif
#include "Soap11.nsmap"

int __ns1__Ask(struct soap *soap, struct _ns2__capacityRequest *request, struct _ns2__offer *offer) {
#ifdef RELIABLE
    if (soap_wsrm_check(soap)) return soap->error; /* what has come before is not done again */
    printf("asked %s\n", request->item), fflush(stdout);
#endif
    if (request->count >= 100) {
        struct SOAP_ENV__Detail *detail;
        soap_sender_fault(soap, "refused", NULL);
        detail = soap->fault->detail = soap_malloc(soap, sizeof *detail);
        memset(detail, 0, sizeof *detail);
        detail->ns2__refusal = "too many";
        return SOAP_FAULT;
    }
    offer->item = request->item;
    offer->price = soap_malloc(soap, 24);
    snprintf(offer->price, 24, "%d", request->count * 2);
#ifdef RELIABLE
    return soap_wsrm_reply(soap, NULL, "urn:example:offered");
#else
    return SOAP_OK;
#endif
}

int __ns1__Place(struct soap *soap, struct _ns2__order *order) {
    printf("order %d\n", order->id);
    fflush(stdout);
    return soap_send_empty_response(soap, 202);
}

int __ns1__Ask_(struct soap *soap, struct _ns2__capacityRequest *request, struct _ns2__offer *offer) {
    return __ns1__Ask(soap, request, offer);
}

int __ns1__Place_(struct soap *soap, struct _ns2__order *order) { return __ns1__Place(soap, order); }

int ns3__Sum(struct soap *soap, int a, int b, struct ns3__SumResponse *sum) {
    (void)soap;
    sum->sum = a + b;
    return SOAP_OK;
}

int main(void) {
    struct soap *soap = soap_new1(SOAP_C_UTFSTRING);
    struct sockaddr_in at;
    socklen_t size = sizeof at;
#ifdef RELIABLE
    soap_register_plugin(soap, soap_wsa), soap_register_plugin(soap, soap_wsrm);
#endif
    SOAP_SOCKET bound = soap_bind(soap, "127.0.0.1", 0, 100);
    if (!soap_valid_socket(bound) || getsockname(bound, (struct sockaddr *)&at, &size)) return 1;
    printf("%d\n", ntohs(at.sin_port));
    fflush(stdout);
    while (soap_valid_socket(soap_accept(soap))) {
        soap_serve(soap);
        soap_destroy(soap), soap_end(soap);
    }
    return 0;
}
