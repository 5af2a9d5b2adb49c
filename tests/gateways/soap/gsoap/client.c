/* Calls every operation of the supplier: client ADDRESS-OF-CAPACITY ADDRESS-OF-SUMS. One line for each. */
#include "soapH.h"
#include "Soap11.nsmap"

int main(int count, char **words) {
    struct soap *soap = soap_new1(SOAP_C_UTFSTRING);
    struct _ns2__capacityRequest request = {"n\xc3\xbcts", 3};
    struct _ns2__offer offer;
    struct _ns2__order order = {7, NULL};
    struct ns3__SumResponse sum;
    if (count != 3) return 2;
    soap->connect_timeout = soap->send_timeout = soap->recv_timeout = 60;
    if (soap_call___ns1__Ask(soap, words[1], NULL, &request, &offer)) soap_print_fault(soap, stderr);
    else printf("offer %s %s\n", offer.item, offer.price);
    request.count = 500;
    if (soap_call___ns1__Ask(soap, words[1], NULL, &request, &offer) && soap->fault && soap->fault->detail)
        printf("fault %s\n", soap->fault->detail->ns2__refusal);
    if (soap_send___ns1__Place(soap, words[1], NULL, &order) || soap_recv_empty_response(soap)) soap_print_fault(soap, stderr);
    else printf("placed\n");
    if (soap_call_ns3__Sum(soap, words[2], NULL, 2, 3, &sum)) soap_print_fault(soap, stderr);
    else printf("sum %d\n", sum.sum);
    soap_destroy(soap), soap_end(soap), soap_free(soap);
    return 0;
}
