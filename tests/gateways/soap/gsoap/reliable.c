/* Sends orders by WS-ReliableMessaging: reliable ADDRESS COUNT [STATE]. Ends with 0 if all were acknowledged. With a file
   for its state, a program that was killed goes on in its sequence behind what was acknowledged. */
#include "wsrmapi.h"
#include "Soap11.nsmap"

/* What comes without being asked for is for servers. */
int SOAP_ENV__Fault(struct soap *soap, char *code, char *string, char *actor, struct SOAP_ENV__Detail *detail,
                    struct SOAP_ENV__Code *c, struct SOAP_ENV__Reason *r, char *node, char *role,
                    struct SOAP_ENV__Detail *d) {
    (void)code, (void)string, (void)actor, (void)detail, (void)c, (void)r, (void)node, (void)role, (void)d;
    return soap_send_empty_response(soap, SOAP_OK);
}

static char acknowledged[100001];
static ULONG64 highest;

/* What the partner says it has. The plug-in forgets messages above one that is sent again, so this is noted here. */
static void note(struct soap *soap) {
    int i, range;
    for (i = 0; soap->header && i < soap->header->__sizeSequenceAcknowledgement; i++) {
        struct _wsrm__SequenceAcknowledgement *said = soap->header->wsrm__SequenceAcknowledgement + i;
        for (range = 0; range < said->__sizeAcknowledgementRange; range++) {
            ULONG64 number = said->AcknowledgementRange[range].Lower;
            for (; number <= said->AcknowledgementRange[range].Upper && number <= 100000; number++)
                acknowledged[number] = 1;
        }
    }
}

/* The state is one line of a fixed length, so that it is written at once: how many are acknowledged, the highest number
   that was sent (the plug-in ends a sequence in which a number above it is acknowledged), the sequence. */
static void keep(FILE *state, ULONG64 done, const char *id) {
    if (!state) return;
    rewind(state);
    fprintf(state, "%10d %10d %-100s\n", (int)done, (int)highest, id);
    fflush(state);
}

static void place(struct soap *soap, soap_wsrm_sequence_handle sequence, ULONG64 number, FILE *state, ULONG64 done) {
    struct _ns2__order order = {(int)number - 1, NULL};
    if (number > highest) {
        highest = number;
        keep(state, done, sequence->id);
    }
    if (soap_wsrm_request_num(soap, sequence, soap_wsa_rand_uuid(soap), "urn:example:place", number)) return;
    sequence->num = highest;
    /* The answer is an empty body, and a header with acknowledgements. */
    if (!(soap_send___ns1__Place(soap, soap_wsrm_to(sequence), "urn:example:place", &order) || soap_begin_recv(soap) ||
          soap_envelope_begin_in(soap) || soap_recv_header(soap) || soap_body_begin_in(soap) ||
          soap_body_end_in(soap) || soap_envelope_end_in(soap) || soap_end_recv(soap)))
        note(soap);
    soap_closesock(soap);
}

static ULONG64 resume(FILE *state, soap_wsrm_sequence_handle sequence) {
    char id[128];
    int done, sent;
    if (!state || fscanf(state, "%d %d %100s", &done, &sent, id) != 3) return 0;
    free((void *)sequence->id);
    sequence->id = strdup(id);
    memset(acknowledged, 1, done + 1);
    highest = sent;
    return done;
}

int main(int count, char **words) {
    struct soap *soap = soap_new1(SOAP_C_UTFSTRING | SOAP_XML_INDENT);
    soap_wsrm_sequence_handle sequence = NULL;
    int many = count >= 3 ? atoi(words[2]) : 0, tries;
    FILE *state = count == 4 ? fdopen(open(words[3], O_RDWR | O_CREAT, 0600), "r+") : NULL;
    ULONG64 number, done;
    if (many <= 0 || many > 100000) return 2;
    soap->connect_timeout = soap->send_timeout = soap->recv_timeout = 20;
    soap_register_plugin(soap, soap_wsa);
    soap_register_plugin(soap, soap_wsrm);
    for (tries = 0; soap_wsrm_create(soap, words[1], NULL, 600000, soap_wsa_rand_uuid(soap), &sequence); tries++) {
        if (tries == 50) return soap_print_fault(soap, stderr), 3;
        if (sequence) soap_wsrm_seq_free(soap, sequence), sequence = NULL;
    }
    done = resume(state, sequence);
    keep(state, done, sequence->id);
    for (number = done + 1; number <= (ULONG64)many; number++) {
        place(soap, sequence, number, state, done);
        while (acknowledged[done + 1]) keep(state, ++done, sequence->id);
    }
    for (tries = 0, number = done + 1; number <= (ULONG64)many && tries < 20 * many; tries++) {
        if (acknowledged[number]) keep(state, number++, sequence->id);
        else place(soap, sequence, number, state, number - 1);
    }
    printf("%d not acknowledged\n", many + 1 - (int)number);
    for (tries = 0; soap_wsrm_terminate(soap, sequence, soap_wsa_rand_uuid(soap)) && tries < 20; tries++) continue;
    return number <= (ULONG64)many ? 5 : 0;
}
