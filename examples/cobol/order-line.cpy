      *    One line of an order.
       01  :TAG:-LINE.
           02  :TAG:-ITEM          PIC X(20).
           02  :TAG:-QUANTITY      PIC 9(5).
