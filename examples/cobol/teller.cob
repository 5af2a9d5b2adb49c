      *    Teller: reads orders segment by segment, answers each.
      *
      *    The first segment is the customer, each other one a line.
      *    Started by a queue, it ends when the queue is empty; with
      *    the word WAIT it goes on to the end of a group (EGI).
       IDENTIFICATION DIVISION.
       PROGRAM-ID. TELLER.
       DATA DIVISION.
       WORKING-STORAGE SECTION.
       01  CUSTOMER                PIC X(25).
           COPY "order-line.cpy" REPLACING ==:TAG:== BY ==ORDER==.
       01  TOTALS.
           02  LINES-OF-ORDER      PIC 9(4) VALUE 0.
           02  TOTAL-QUANTITY      PIC 9(7) VALUE 0.
       01  ANSWER.
           02  ANSWER-CUSTOMER     PIC X(25).
           02  ANSWER-LINES        PIC ZZZ9.
           02  FILLER              PIC X(7) VALUE " LINES ".
           02  ANSWER-TOTAL        PIC Z(6)9.
       01  COMMAND-WORDS           PIC X(80).
       01  WAITING                 PIC 9(4) VALUE 0.
       01  ENDED                   PIC X VALUE "N".
       COMMUNICATION SECTION.
       CD  ORDERS-IN FOR INITIAL INPUT
           SYMBOLIC QUEUE IS ORDER-QUEUE
           SYMBOLIC SOURCE IS ORDER-SOURCE
           TEXT LENGTH IS ORDER-LENGTH
           END KEY IS ORDER-END
           STATUS KEY IS ORDER-STATUS
           MESSAGE COUNT IS ORDERS-LEFT.
       CD  ANSWERS FOR OUTPUT
           DESTINATION TABLE OCCURS 2 TIMES INDEXED BY PLACE
           DESTINATION COUNT IS ANSWER-COUNT
           TEXT LENGTH IS ANSWER-LENGTH
           STATUS KEY IS ANSWER-STATUS
           ERROR KEY IS ANSWER-ERROR
           SYMBOLIC DESTINATION IS ANSWER-NAME.
       PROCEDURE DIVISION.
       MAIN-PARAGRAPH.
           ACCEPT COMMAND-WORDS FROM COMMAND-LINE.
           INSPECT COMMAND-WORDS TALLYING WAITING FOR ALL "WAIT".
           IF ORDER-QUEUE = SPACES
               MOVE "ORDERS" TO ORDER-QUEUE.
           MOVE 1 TO ANSWER-COUNT.
           MOVE "COUNTER" TO ANSWER-NAME (1).
           PERFORM ONE-ORDER UNTIL ENDED = "Y".
           STOP RUN.
       ONE-ORDER.
           MOVE SPACES TO CUSTOMER.
           MOVE 0 TO LINES-OF-ORDER TOTAL-QUANTITY.
           IF WAITING = 0
               RECEIVE ORDERS-IN SEGMENT INTO CUSTOMER
                   NO DATA MOVE "Y" TO ENDED
               END-RECEIVE
           ELSE
               RECEIVE ORDERS-IN SEGMENT INTO CUSTOMER.
           IF ENDED = "N"
               PERFORM CHECK-STATUS
               PERFORM ONE-LINE
                   UNTIL ORDER-END = "2" OR ORDER-END = "3"
               PERFORM SEND-ANSWER.
       ONE-LINE.
           MOVE SPACES TO ORDER-LINE.
           RECEIVE ORDERS-IN SEGMENT INTO ORDER-LINE.
           PERFORM CHECK-STATUS.
           ADD 1 TO LINES-OF-ORDER.
           ADD ORDER-QUANTITY TO TOTAL-QUANTITY.
       SEND-ANSWER.
           MOVE CUSTOMER TO ANSWER-CUSTOMER.
           MOVE LINES-OF-ORDER TO ANSWER-LINES.
           MOVE TOTAL-QUANTITY TO ANSWER-TOTAL.
           IF ORDER-END = "3" AND WAITING NOT = 0
               MOVE "Y" TO ENDED.
           IF CUSTOMER NOT = SPACES
               MOVE 43 TO ANSWER-LENGTH
               SEND ANSWERS FROM ANSWER WITH EMI
                   AFTER ADVANCING 1 LINE
               IF ANSWER-STATUS NOT = "00"
                   AND ANSWER-STATUS NOT = "10"
                   DISPLAY "STATUS " ANSWER-STATUS
                   MOVE 1 TO RETURN-CODE
                   STOP RUN.
       CHECK-STATUS.
           IF ORDER-STATUS NOT = "00"
               DISPLAY "STATUS " ORDER-STATUS
               MOVE 1 TO RETURN-CODE
               STOP RUN.
