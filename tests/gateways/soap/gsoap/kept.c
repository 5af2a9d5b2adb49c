/* Takes orders by WS-ReliableMessaging at a port: kept PORT STATE. The sequences and the orders are lines of the file, each
   written before its answer, so that a program that was killed knows them again; the plug-in keeps them in its memory. */
#define __wsrm__CreateSequence plugin_CreateSequence
#include "wsrmapi.c"
#undef __wsrm__CreateSequence
#include "Soap11.nsmap"

static FILE *state;

int SOAP_ENV__Fault(struct soap *soap, char *code, char *string, char *actor, struct SOAP_ENV__Detail *detail,
                    struct SOAP_ENV__Code *c, struct SOAP_ENV__Reason *r, char *node, char *role,
                    struct SOAP_ENV__Detail *d) {
    (void)code, (void)string, (void)actor, (void)detail, (void)c, (void)r, (void)node, (void)role, (void)d;
    return soap_send_empty_response(soap, SOAP_OK);
}

int __wsrm__CreateSequence(struct soap *soap, struct wsrm__CreateSequenceType *asked,
                           struct wsrm__CreateSequenceResponseType *made) {
    int error = plugin_CreateSequence(soap, asked, made);
    if (!error) fprintf(state, "sequence %s\n", made->Identifier), fflush(state);
    return error;
}

static void remember(struct soap *soap) {
    struct soap_wsrm_sequence *sequence = NULL;
    char line[256], id[200];
    unsigned long long number;
    int order;
    while (fgets(line, sizeof line, state)) {
        if (sscanf(line, "sequence %199s", id) == 1) {
            sequence = soap_wsrm_seq_insert(soap);
            sequence->acksid = strdup(id);
            sequence->state = SOAP_WSRM_CREATED;
            sequence->expires = time(NULL) + 3600;
            soap_wsrm_seq_insert_ack(sequence);
        } else if (sscanf(line, "order %d %llu %199s", &order, &number, id) == 3) {
            sequence = soap_wsrm_seq_lookup_ack(id);
            soap_wsrm_num_insert(soap, sequence, number);
            sequence->recvnum = number;
        }
    }
}

int __ns1__Place(struct soap *soap, struct _ns2__order *order) {
    struct wsrm__SequenceType *here;
    if (soap_wsrm_check(soap)) return soap->error; /* it came before, or is out of order */
    here = soap->header->wsrm__Sequence;
    fprintf(state, "order %d %llu %s\n", order->id, (unsigned long long)here->MessageNumber, here->Identifier);
    fflush(state);
    return soap_send_empty_response(soap, 202);
}

int __ns1__Place_(struct soap *soap, struct _ns2__order *order) { return __ns1__Place(soap, order); }

int __ns1__Ask(struct soap *soap, struct _ns2__capacityRequest *request, struct _ns2__offer *offer) {
    (void)request, (void)offer;
    return soap_sender_fault(soap, "refused", NULL);
}

int __ns1__Ask_(struct soap *soap, struct _ns2__capacityRequest *request, struct _ns2__offer *offer) {
    return __ns1__Ask(soap, request, offer);
}

int ns3__Sum(struct soap *soap, int a, int b, struct ns3__SumResponse *sum) {
    (void)a, (void)b, (void)sum;
    return soap_sender_fault(soap, "refused", NULL);
}

int main(int count, char **words) {
    struct soap *soap = soap_new1(SOAP_C_UTFSTRING);
    if (count != 3 || !(state = fopen(words[2], "a+"))) return 2;
    soap->bind_flags = SO_REUSEADDR;
    soap->recv_timeout = soap->send_timeout = 20;
    soap_register_plugin(soap, soap_wsa), soap_register_plugin(soap, soap_wsrm);
    remember(soap);
    if (!soap_valid_socket(soap_bind(soap, "127.0.0.1", atoi(words[1]), 100))) return 1;
    while (soap_valid_socket(soap_accept(soap))) {
        soap_serve(soap);
        soap_destroy(soap), soap_end(soap);
    }
    return 0;
}
