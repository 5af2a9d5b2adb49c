      *    Order entry: types an order in segments, a line each.
      *
      *    On standard input: the customer, then lines of an item
      *    (20 characters) and a quantity (5 digits). A line that
      *    says END ends the order; STOP ends the group and the
      *    program. Nobody sees an order before its end.
       IDENTIFICATION DIVISION.
       PROGRAM-ID. ENTRY-DESK.
       DATA DIVISION.
       WORKING-STORAGE SECTION.
       01  TYPED                   PIC X(25).
           COPY "order-line.cpy" REPLACING ==:TAG:== BY ==TYPED==.
       01  STARTED                 PIC X VALUE "N".
       COMMUNICATION SECTION.
       CD  DESK FOR OUTPUT
           DESTINATION COUNT IS DESKS
           TEXT LENGTH IS DESK-LENGTH
           STATUS KEY IS DESK-STATUS
           ERROR KEY IS DESK-ERROR
           SYMBOLIC DESTINATION IS DESK-NAME.
       PROCEDURE DIVISION.
       MAIN-PARAGRAPH.
           MOVE 1 TO DESKS.
           MOVE "ORDERS" TO DESK-NAME.
           MOVE 25 TO DESK-LENGTH.
       NEXT-LINE.
           MOVE SPACES TO TYPED.
           ACCEPT TYPED.
           IF TYPED = "STOP" OR TYPED = SPACES
               SEND DESK WITH EGI
               PERFORM CHECK-STATUS
               STOP RUN.
           IF TYPED = "END"
               SEND DESK WITH EMI
               PERFORM CHECK-STATUS
               DISPLAY "SENT"
           ELSE
               SEND DESK FROM TYPED WITH ESI
               PERFORM CHECK-STATUS
               DISPLAY "KEPT".
           GO TO NEXT-LINE.
       CHECK-STATUS.
           IF DESK-STATUS NOT = "00" AND DESK-STATUS NOT = "10"
               DISPLAY "STATUS " DESK-STATUS "/" DESK-ERROR
               MOVE 1 TO RETURN-CODE
               STOP RUN.
