      *    Fills in a form: a claim, field by field, as XML.
      *
      *    On standard input: the claimant, the amount, the loss. A
      *    rule registers it, a counter makes the form of it and puts
      *    it into the mail of a station, whose procedure decides.
       IDENTIFICATION DIVISION.
       PROGRAM-ID. CLAIM-DESK.
       DATA DIVISION.
       WORKING-STORAGE SECTION.
       01  CLAIMANT                PIC X(20).
       01  AMOUNT                  PIC X(10).
       01  LOSS                    PIC X(30).
       01  FORM-TEXT               PIC X(200).
       01  NEXT-PLACE              PIC 9(4).
       COMMUNICATION SECTION.
       CD  CLAIMS-OUT FOR OUTPUT
           DESTINATION COUNT IS CLAIM-COUNT
           TEXT LENGTH IS CLAIM-LENGTH
           STATUS KEY IS CLAIM-STATUS
           SYMBOLIC DESTINATION IS CLAIM-NAME.
       PROCEDURE DIVISION.
       MAIN-PARAGRAPH.
           ACCEPT CLAIMANT.
           ACCEPT AMOUNT.
           ACCEPT LOSS.
           MOVE 1 TO NEXT-PLACE.
           STRING "<claim><Claimant>" DELIMITED BY SIZE
                  CLAIMANT DELIMITED BY "  "
                  "</Claimant><Amount>" DELIMITED BY SIZE
                  AMOUNT DELIMITED BY SPACE
                  "</Amount><Loss>" DELIMITED BY SIZE
                  LOSS DELIMITED BY "  "
                  "</Loss></claim>" DELIMITED BY SIZE
               INTO FORM-TEXT WITH POINTER NEXT-PLACE.
           SUBTRACT 1 FROM NEXT-PLACE GIVING CLAIM-LENGTH.
           MOVE 1 TO CLAIM-COUNT.
           MOVE "claims" TO CLAIM-NAME.
           SEND CLAIMS-OUT FROM FORM-TEXT WITH EMI.
           DISPLAY "STATUS " CLAIM-STATUS.
           STOP RUN.
