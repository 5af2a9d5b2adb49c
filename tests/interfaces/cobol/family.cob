000100 IDENTIFICATION DIVISION.                                         FAMILY85
000200 PROGRAM-ID.                                                      FAMILY85
000300     FAMILY.                                                      FAMILY85
000400*    EVERY CLAUSE OF THE COMMUNICATION MODULE IN THE MANNER OF    FAMILY85
000500*    A VALIDATION SUITE: CARDS, ABBREVIATED WORDS, SEPARATORS,    FAMILY85
000600*    TABLES, QUALIFIED NAMES, SEVERAL RECORDS FOR ONE CD.         FAMILY85
000700 ENVIRONMENT DIVISION.                                            FAMILY85
000800 CONFIGURATION SECTION.                                           FAMILY85
000900 SOURCE-COMPUTER.                                                 FAMILY85
001000     XXXXX082.                                                    FAMILY85
001100 OBJECT-COMPUTER.                                                 FAMILY85
001200     XXXXX083.                                                    FAMILY85
001300 SPECIAL-NAMES.                                                   FAMILY85
001400     C01 IS NEW-SHEET.                                            FAMILY85
001500 DATA DIVISION.                                                   FAMILY85
001600 WORKING-STORAGE SECTION.                                         FAMILY85
001700 77  SUB                      PIC 99 COMP.                        FAMILY85
001800 77  HOW-MANY                 PIC S9(3) COMP VALUE 2.             FAMILY85
001900 01  IN-KEY                   PIC X(10) VALUE                     FAMILY85
002000     XXXXX031.                                                    FAMILY85
002100 01  KEYS.                                                        FAMILY85
002200     02  OUT-KEY              PIC X(10) OCCURS 2 TIMES.           FAMILY85
002300 01  ENDINGS.                                                     FAMILY85
002400     02  ENDING               PIC 9 OCCURS 3 TIMES.               FAMILY85
002500 01  MSG-A.                                                       FAMILY85
002600     02  TEXT-LINE            PIC X(8) OCCURS 4 TIMES.            FAMILY85
002700 01  MSG-B.                                                       FAMILY85
002800     02  PART.                                                    FAMILY85
002900         03  SHORT-AREA       PIC X(4).                           FAMILY85
003000         03  GUARD            PIC X(4).                           FAMILY85
003100 01  MSG-C.                                                       FAMILY85
003200     02  PART                 PIC X(12).                          FAMILY85
003300 01  A-LONG-LITERAL           PIC X(70) VALUE "THIS LITERAL IS CONFAMILY85
003400-    "TINUED; SEND AND RECEIVE IN IT ARE NO VERBS".               FAMILY85
003500 COMMUNICATION SECTION.                                           FAMILY85
003600 CD  FIRST-CD FOR INITIAL INPUT                                   FAMILY85
003700     F-QUEUE F-SUB-1 FILLER FILLER F-DATE F-TIME F-SOURCE         FAMILY85
003800     F-LENGTH F-END F-STATUS F-COUNT.                             FAMILY85
003900 CD  IN-CD INPUT; QUEUE IS IN-QUEUE, SUB-QUEUE-1 IN-SUB-1;        FAMILY85
004000     SUB-QUEUE-2 IS IN-SUB-2, SUB-QUEUE-3 IS IN-SUB-3;            FAMILY85
004100     DATE IS IN-DATE; TIME IS IN-TIME; SOURCE IN-SOURCE;          FAMILY85
004200     LENGTH IN-LENGTH, END IN-END; STATUS IS IN-STATUS;           FAMILY85
004300     COUNT IS IN-COUNT.                                           FAMILY85
004400 01  IN-RECORD.                                                   FAMILY85
004500     02  IN-NAMES             PIC X(48).                          FAMILY85
004600     02  FILLER               PIC X(31).                          FAMILY85
004700     02  IN-STATE             PIC XX.                             FAMILY85
004800         88  IN-OK            VALUE "00".                         FAMILY85
004900         88  IN-UNKNOWN       VALUE "20".                         FAMILY85
005000     02  FILLER               PIC X(6).                           FAMILY85
005100 01  IN-SHAPE.                                                    FAMILY85
005200     02  IN-NAME              PIC X(12) OCCURS 4 TIMES            FAMILY85
005300                              INDEXED BY IN-INDEX.                FAMILY85
005400     02  FILLER               PIC X(39).                          FAMILY85
005500 CD  OUT-CD OUTPUT; DESTINATION COUNT OUT-COUNT;                  FAMILY85
005600     LENGTH OUT-LENGTH; STATUS OUT-STATUS;                        FAMILY85
005700     DESTINATION TABLE OCCURS 2 TIMES INDEXED BY O-1, O-2         FAMILY85
005800     ERROR OUT-ERROR; DESTINATION IS OUT-NAME.                    FAMILY85
005900 CD  BARE-CD FOR OUTPUT.                                          FAMILY85
006000 01  FILLER.                                                      FAMILY85
006100     02  BARE-COUNT           PIC 9(4) VALUE 1.                   FAMILY85
006200     02  BARE-LENGTH          PIC 9(4) VALUE 4.                   FAMILY85
006300     02  BARE-STATUS          PIC XX.                             FAMILY85
006400     02  BARE-ERROR           PIC X.                              FAMILY85
006500     02  BARE-NAME            PIC X(12) VALUE                     FAMILY85
006600         XXXXX032.                                                FAMILY85
006700 CD  DESK-CD FOR I-O D-DATE D-TIME D-TERMINAL D-LENGTH            FAMILY85
006800     D-END OUT-STATUS.                                            FAMILY85
006900 PROCEDURE DIVISION.                                              FAMILY85
007000 SECT-FAMILY SECTION.                                             FAMILY85
007100 CM-INIT.                                                         FAMILY85
007200     MOVE XXXXX033 TO OUT-KEY (1) OUT-KEY (2).                    FAMILY85
007300     MOVE "123" TO ENDINGS.                                       FAMILY85
007400     MOVE "AAAA    BBBB    CCCC    DDDD" TO MSG-A.                FAMILY85
007500     DISPLAY "INITIAL " F-QUEUE.                                  FAMILY85
007600 SEND-FROM-A-TABLE.                                               FAMILY85
007700     MOVE 2 TO OUT-COUNT. MOVE 4 TO OUT-LENGTH.                   FAMILY85
007800     MOVE XXXXX032 TO OUT-NAME (1). SET O-1 TO 2.                 FAMILY85
007900     MOVE "LOG" TO OUT-NAME (O-1).                                FAMILY85
008000     MOVE 1 TO SUB.                                               FAMILY85
008100     SEND OUT-CD FROM TEXT-LINE (SUB) WITH ENDING (1).            FAMILY85
008200     SEND OUT-CD; FROM TEXT-LINE (SUB + 1), WITH ESI;             FAMILY85
008300         AFTER ADVANCING HOW-MANY LINES.                          FAMILY85
008400     SEND OUT-CD FROM TEXT-LINE (3) EMI BEFORE 1 LINE.            FAMILY85
008500     DISPLAY "TABLE " OUT-STATUS OF OUT-CD
                 " " OUT-ERROR (1) OUT-ERROR (2).
008600     SEND OUT-CD FROM MSG-A (9:4) WITH EGI                        FAMILY85
008700         AFTER ADVANCING NEW-SHEET.                               FAMILY85
008800     DISPLAY "SHEET " OUT-STATUS OF OUT-CD.
008900     SEND BARE-CD FROM PART OF MSG-B WITH EMI                     FAMILY85
009000         BEFORE ADVANCING ZERO LINES.                             FAMILY85
009100     DISPLAY "BARE " BARE-STATUS.                                 FAMILY85
009200 BLANK-NAMES.                                                     FAMILY85
009300     MOVE SPACES TO OUT-NAME (1).                                 FAMILY85
009400     SEND OUT-CD FROM TEXT-LINE (4) WITH EMI.                     FAMILY85
009500     DISPLAY "BLANK " OUT-STATUS OF OUT-CD
                 " " OUT-ERROR (1) OUT-ERROR (2).
009600     MOVE 0 TO OUT-COUNT. SEND OUT-CD FROM MSG-A WITH EMI.        FAMILY85
009700     DISPLAY "ZERO " OUT-STATUS OF OUT-CD. MOVE 1 TO OUT-COUNT.
009800     MOVE XXXXX032 TO OUT-NAME (1).                               FAMILY85
009900 RECEIVE-SHORT.                                                   FAMILY85
010000     MOVE SPACES TO IN-RECORD.                                    FAMILY85
010100     MOVE XXXXX030 TO IN-NAME (1).                                FAMILY85
010200     ACCEPT IN-CD COUNT.                                          FAMILY85
010210     MOVE SPACES TO IN-QUEUE OF IN-CD.                            FAMILY85
010220     MOVE XXXXX030 TO IN-NAME OF IN-SHAPE IN IN-CD (1).           FAMILY85
010300     DISPLAY "COUNT " IN-STATE OF IN-CD " " IN-COUNT IN IN-CD.    FAMILY85
010400     MOVE "....++++" TO MSG-B.                                    FAMILY85
010500     RECEIVE IN-CD SEGMENT INTO SHORT-AREA OF MSG-B;              FAMILY85
010600         NO DATA DISPLAY "NO DATA" GO TO RECEIVE-REST.            FAMILY85
010700     DISPLAY "SEGMENT " IN-STATUS " " IN-END " " IN-LENGTH " "    FAMILY85
010800         SHORT-AREA GUARD.                                        FAMILY85
010900     RECEIVE IN-CD SEGMENT INTO TEXT-LINE (4) (1 : 4).            FAMILY85
011000     DISPLAY "SEGMENT " IN-STATUS " " IN-END " " IN-LENGTH " "    FAMILY85
011100         TEXT-LINE (4).                                           FAMILY85
011200     MOVE ALL "." TO MSG-C.                                       FAMILY85
011300     RECEIVE IN-CD MESSAGE INTO PART OF MSG-C.                    FAMILY85
011400     DISPLAY "MESSAGE " IN-STATUS " " IN-END " " IN-LENGTH " "    FAMILY85
011500         MSG-C.                                                   FAMILY85
011600 RECEIVE-REST.                                                    FAMILY85
011700     MOVE SPACES TO IN-SUB-1 IN-SUB-2 IN-SUB-3.                   FAMILY85
011800     IF IN-OK                                                     FAMILY85
011900         RECEIVE IN-CD MESSAGE INTO MSG-A NO DATA                 FAMILY85
012000             DISPLAY "EMPTY " IN-STATUS                           FAMILY85
012100         DATA                                                     FAMILY85
012200             RECEIVE IN-CD MESSAGE INTO MSG-A                     FAMILY85
012300                 NO DATA DISPLAY "INNER"                          FAMILY85
012400             END-RECEIVE                                          FAMILY85
012500             DISPLAY "DATA " IN-STATUS                            FAMILY85
012600         END-RECEIVE                                              FAMILY85
012700     ELSE                                                         FAMILY85
012800         DISPLAY "NOT OK".                                        FAMILY85
012900     MOVE SPACES TO IN-NAMES. MOVE "NOWHERE" TO IN-QUEUE.         FAMILY85
013000     RECEIVE IN-CD MESSAGE INTO MSG-A END-RECEIVE                 FAMILY85
013100     IF IN-UNKNOWN DISPLAY "UNKNOWN " IN-STATE.                   FAMILY85
013200 SWITCHING.                                                       FAMILY85
013300     MOVE XXXXX030 TO IN-QUEUE.                                   FAMILY85
013400     DISABLE INPUT IN-CD WITH KEY IN-KEY.                         FAMILY85
013500     DISPLAY "OFF " IN-STATUS.                                    FAMILY85
013600     ENABLE INPUT IN-CD KEY XXXXX031.                             FAMILY85
013700     DISPLAY "ON " IN-STATUS.                                     FAMILY85
013800     MOVE "DESK" TO IN-SOURCE.                                    FAMILY85
013900     DISABLE INPUT TERMINAL IN-CD WITH KEY "DESKKEY".             FAMILY85
014000     DISPLAY "TERMINAL " IN-STATUS.                               FAMILY85
014100     ENABLE INPUT TERMINAL IN-CD WITH KEY "WRONG".                FAMILY85
014200     DISPLAY "KEY " IN-STATUS.                                    FAMILY85
014300     MOVE "DESK" TO D-TERMINAL.                                   FAMILY85
014400     ENABLE I-O TERMINAL DESK-CD WITH KEY "DESKKEY".              FAMILY85
014500     DISPLAY "I-O " OUT-STATUS OF DESK-CD.                        FAMILY85
014600     DISABLE OUTPUT OUT-CD WITH KEY OUT-KEY (SUB).                FAMILY85
014700     DISPLAY "OUTPUT " OUT-STATUS OF OUT-CD " " OUT-ERROR (1).
014800     ENABLE OUTPUT OUT-CD; WITH KEY OUT-KEY (2).                  FAMILY85
014900     DISPLAY "OUTPUT " OUT-STATUS OF OUT-CD.
015000     ENABLE OUTPUT OUT-CD WITH KEY SPACES.                        FAMILY85
015100     DISPLAY "BLANK KEY " OUT-STATUS OF OUT-CD.
015200 PURGING.                                                         FAMILY85
015300     MOVE 4 TO OUT-LENGTH.                                        FAMILY85
015400     SEND OUT-CD FROM MSG-A.                                      FAMILY85
015500     PURGE OUT-CD. DISPLAY "PURGE " OUT-STATUS OF OUT-CD.
015600     PURGE OUT-CD; DISPLAY "PURGE " OUT-STATUS OF OUT-CD
                 " " OUT-ERROR (1).
015700     MOVE 4 TO D-LENGTH.                                          FAMILY85
015800     SEND DESK-CD FROM MSG-C WITH EMI; REPLACING LINE.            FAMILY85
015900     DISPLAY "DESK " OUT-STATUS OF DESK-CD.                                    FAMILY85
016000     RECEIVE DESK-CD MESSAGE INTO MSG-A                           FAMILY85
016100         NO DATA DISPLAY "DESK EMPTY " OUT-STATUS IN DESK-CD.     FAMILY85
016200     STOP RUN.                                                    FAMILY85
