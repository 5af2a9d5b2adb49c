"""The pages of a server, for people: below ``/web`` of ``postroom serve``.

To add a page:

1. Write a module of the page's name in ``stations``, ``definitions`` or ``operating``, with a function
   ``show(visit) -> context``, and one function for each thing that its buttons do. ``visit.room`` is the room as the
   visitor may use it; ``visit.names`` is what the path says, ``visit.query`` what the address asks for, ``visit.form``
   what a form has sent. ``show`` changes nothing.
2. Write ``templates/<name>.html`` that extends ``frame.html`` and uses the macros of ``parts.html``: ``section``,
   ``empty``, ``key``, ``place``, ``age``, ``sign``, ``button``, ``problem``. Everything is escaped. There is no inline
   script or style; widths of forms are the classes ``w1`` to ``w200``. Addresses come from ``visit.address(path, names,
   **query)``, files from ``static(name)``.
3. Export ``PAGE = Page(path, template, show, right, of, actions, label=…, group=…)`` and put it into ``registry.py``.
   ``right`` and ``of`` are those of the operation of the server that a program would call (``contract/operations.py``
   in ``interfaces/http``); they are checked before ``show`` and before each action. What else a page shows or does is
   asked for with ``visit.require(right, of, names)``, and offered only if ``visit.may(right, object)``. ``label`` puts
   the page into the navigation, ``group`` is ``office`` or ``operators``.
4. An action is a form with ``method="post"`` and a button named ``do`` whose value is the action's name. It returns
   with ``Goto(address, notice)``, or ``Again(context)`` if something is wrong in a field. A typed error that it raises
   is shown above the page, with its advice and whether anything happened.
5. A part that changes by itself has ``data-live`` and an ``id``; the template sets ``live`` to a topic (``room``, or
   ``station:NAME``) and it is asked for again whenever something happens there.
6. What may take longer than a moment is begun with ``visit.asked(about, work)``; until it is over, the page shows
   ``parts.asking``, and its action ``stop`` ends it.

``tests/interfaces/web`` walks the registry: each page is asked for without a session, without a right, and with
payloads; axe looks at it in both themes and three widths.
"""
