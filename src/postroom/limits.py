"""Every bound in one place: sizes, depths, counts, times. The reference page is checked against this file."""

from __future__ import annotations

from typing import Final

# --- messages ---
BODY_BYTES_MAX: Final = 4 * 1024 * 1024  # a body is read, hashed and sent whole
BODY_DEPTH_MAX: Final = 200  # nesting of XML elements or JSON values
XML_ATTRIBUTES_MAX: Final = 1_000  # on one element
DECIMAL_EXPONENT_MAX: Final = 1_000  # of a decimal that is written with one: all views write it out
PROPERTIES_MAX: Final = 100  # on one message
PROPERTY_BYTES_MAX: Final = 4_096  # one name and value
BULK_MESSAGES: Final = 10_000  # of a file, sent in one commit
BULK_BYTES: Final = 16 * 1024 * 1024  # of bodies of a file, in one commit
BATCH_MESSAGES_MAX: Final = 1_000_000  # in one send of many

# --- queues ---
NAME_CHARS_MAX: Final = 12  # a symbolic name in a description (rule 3 of the language)
PASSWORD_CHARS_MAX: Final = 10  # a password in a description (rule 4)
HIERARCHY_LEVELS_MAX: Final = 4  # of a tree of queues
HIERARCHY_ENTRIES_MAX: Final = 1_000  # of one description
QUEUE_NAME_CHARS_MAX: Final = 200  # a queue made without a description
DESCRIPTION_BYTES_MAX: Final = 1024 * 1024  # of a file of definitions
COMMAND_CHARS_MAX: Final = 1_000  # of a command line
LOCK_LEASE_SECONDS: Final = 300.0  # a segment lock lasts this long after its last segment
HANDOUT_SECONDS: Final = 300.0  # for writing out a message whose receiver is on another machine
READER_SECONDS: Final = 1.0  # a command waits for the reader of its pipe to read the message
LEASE_SECONDS: Final = 30.0  # a message is leased, if neither the queue nor the receiver says for how long
LEASE_SECONDS_MAX: Final = 86_400.0  # of one lease, and of one extension
BACKOFF_SECONDS_MAX: Final = 3_600.0  # between two attempts, unless the queue says otherwise
ATTEMPTS_MAX: Final = 10_000  # that a policy can ask for
DELAY_SECONDS_MAX: Final = 10 * 366 * 86_400.0  # of a message that is to come later, or expires
PRIORITY_MAX: Final = 9  # of a message; 0 is that of most
LEASES_MAX: Final = 10_000  # given out in one call
DELIVERIES_DUE_MAX: Final = 500  # messages that one receive brings back, as they are due or their lease ended
LANE_LOOKS_MAX: Final = 100  # times that one receive looks past messages whose key is taken
SELECTIONS_MAX: Final = 16  # properties by which messages of a queue are found; by others all that wait are read
SELECT_COUNT_FIRST: Final = 1_000  # up to so many are counted to find the property that leads to the fewest
SELECT_COUNT_MAX: Final = 100_000  # and up to so many if the first count has told nothing
SELECT_LOOK_SECONDS: Final = 1.0  # between two looks of someone who waits for messages of a selector
OWNERS_LOOK_SECONDS: Final = 0.2  # between two looks whether the processes still live that have leases
WORKERS_MAX: Final = 1_000  # calls of one worker at a time
WORKER_WAIT_SECONDS: Final = 0.5  # that a worker waits for a message before it looks whether it was stopped
SCHEDULE_LATE_SECONDS: Final = 60.0  # after its time a schedule that catches up none sends nothing any more
SCHEDULE_MISSED_MAX: Final = 1_000  # messages that a schedule sends at once for times that were missed
FULL_LOOK_SECONDS: Final = 0.1  # between two looks whether a full queue has room
AIO_POLL_SECONDS: Final = 20.0  # that one request of a room for asyncio waits at a server; then the next one does
AIO_THREADS: Final = 8  # in which calls of a room for asyncio wait for its store
LOCK_WAIT_SECONDS: Final = 2.0  # how long a receive without --wait waits for another user's lock
WAIT_SECONDS_MAX: Final = 86_400.0  # that one receive waits
SCREEN_MESSAGES: Final = 1_000  # that a listing shows on a terminal, unless a limit is asked for
FOLLOW_SECONDS: Final = 3_600.0  # one wait of a receive that follows; then it waits again
SERVER_LANES_MAX: Final = 7  # connections that threads of one room on a server have besides the first
FOLD_LINES: Final = 1_024  # after so many lines the counts of a queue are written down
CALM_LOOKS: Final = 64  # after so many looks at a queue it is noted that there is nothing to look at
SERVER_TIME_SECONDS: Final = 30.0  # so long a server need not be asked for its time again
RECHECK_SECONDS: Final = 5.0  # a waiting receiver checks again after this, in case a wake-up was lost
REFERENCES_KNOWN_MAX: Final = 10_000  # references whose queue an open room remembers
PARTIALS_MAX: Final = 1_000  # destinations to which one program has sent partial messages
COBOL_TEXT_MAX: Final = 9_999  # characters of one SEND or RECEIVE: the text length of a CD has four digits
COBOL_FRAME_BYTES_MAX: Final = 256 * 1024  # of one call of a program to its session
COBOL_SOURCE_BYTES_MAX: Final = 8 * 1024 * 1024  # of one COBOL program or copybook
COBOL_COPY_DEPTH_MAX: Final = 20  # copybooks within copybooks
COMPILE_SECONDS: Final = 120.0  # that a compiler may take for one program
IDEMPOTENCY_CHARS_MAX: Final = 200  # of an idempotency key
ACTOR_CHARS_MAX: Final = 100  # of a name that the journal shows
SECRET_CHARS_MAX: Final = 200  # a principal's password
PASSWORDS_AT_ONCE: Final = 4  # that are looked at in a process; each takes 64 MiB

# --- store ---
BUSY_SECONDS: Final = 10.0  # waiting for another writer
REOPEN_SECONDS: Final = 0.5  # before a command that goes on for long looks whether its database is back
REOPEN_SECONDS_MAX: Final = 10.0  # the same, when it has looked in vain several times
RESERVE_BYTES: Final = 8 * 1024 * 1024  # of disk space, kept beside a room on SQLite for when the disk is full
RESERVE_OPEN_BYTES: Final = 256 * 1024  # of them, kept to open the room
LOOK_SECONDS: Final = 0.05  # between two checks that a room's file and its reserve are still the same
RESERVE_SECONDS: Final = 0.5  # between two tries to make the reserve again
SETTLE_SECONDS: Final = 5.0  # a store tries to find out the outcome of an unconfirmed commit
KEEPALIVE_SECONDS: Final = 10  # after so much silence a peer is asked a few times whether it is there
GROUP_MESSAGES_MAX: Final = 1_000  # sends of several threads that share one commit
CONFLICT_RETRIES_MAX: Final = 20  # of a transaction that conflicted with another one
JOURNAL_ROWS_MAX: Final = 1_000_000  # shown at once
STORY_MESSAGES_MAX: Final = 500  # shown at once by a trace with causes
JOURNAL_PAGE_ROWS: Final = 10_000  # read at a time when the whole journal is
DIFFERENCES_MAX: Final = 100  # shown when a journal and its room differ
SORT_ROWS: Final = 50_000  # of an export that are sorted in memory; more go through files
SORT_FILES_MAX: Final = 64  # of an export, open at once
PAGE_ROWS: Final = 500  # rows fetched at a time when browsing
KEYS_SENT_MIN: Final = 64  # taken from the counter of a server at once, by whoever sends on
KEY_RESERVE_MAX: Final = 4_096  # keys taken from the counter at once
KEY_TAIL: Final = 100_000  # keys per block: the part after the dot has five digits

# --- rules ---
RULE_DEPTH_MAX: Final = 200  # nested expressions in a rule body
PROGRAM_TOKENS_MAX: Final = 200_000  # words and signs of a file; the readers cost a few microseconds for each
PROGRAM_DEPTH_MAX: Final = 1_000  # brackets and elements open at once
COLLECTION_BYTES_MAX: Final = 64 * 1024 * 1024  # of one file of a collection
SCHEMA_FILES_MAX: Final = 64  # of one schema: itself, and what it includes
SLICE_KEY_BYTES_MAX: Final = 2_000  # by which a slice is known; PostgreSQL indexes no more
INDEXED_CHARS_MAX: Final = 500  # of a value in an index; longer ones are found by their beginning
ECHO_SECONDS_MAX: Final = 10 * 366 * 86_400.0  # longest timeout of an echo queue
MESSAGE_ACTIONS_MAX: Final = 10_000  # pending actions of one message
MESSAGE_OUTPUT_BYTES_MAX: Final = 32 * 1024 * 1024  # and all they say
SLOW_SECONDS: Final = 0.3  # a working set whose functions take longer is evaluated apart from the others
EVALUATION_SECONDS: Final = 10.0  # a batch that takes longer is split until the slow message is alone
XQUERY_CHECK_SECONDS: Final = 0.015  # of processor time, for Saxon to compile an expression: most take 5 ms
XQUERY_CHECK_MORE_SECONDS: Final = 0.4  # what all expressions of a load of 10 kB may take beyond it; of more, more
TRYOUT_SECONDS: Final = 2.0  # the same in a dry run, for which someone waits
WORKER_BYTES_MAX: Final = 4 * 1024**3  # of memory; Saxon alone would take four fifths of the machine
ERROR_DEPTH_MAX: Final = 8  # error messages about error messages
ECHO_PASSES_MAX: Final = 8  # from one echo queue into another, without a rule in between

# --- flows ---
FLOW_BYTES_MAX: Final = 16 * 1024 * 1024  # of a file
FLOW_WORDS_MAX: Final = 500_000  # words and signs of a file: some ten thousand arcs
FLOW_WAYS_MAX: Final = 50_000  # arcs on all paths from one space, each counted once per path: events from one event
FLOW_COPIES_MAX: Final = 32  # of arcs in one plan; with more, it is cut where paths meet
FLOW_PLAN_CHARS_MAX: Final = 1_000_000  # of the SQL of one arc
FLOW_WINDOWS_MAX: Final = 1_000  # sliding windows that one event is in
FLOW_EVENTS_KEPT_MAX: Final = 1_000  # last events of a key that an arc reckons with
FLOW_DEPTH_MAX: Final = 100  # nested types, values or patterns
TABLE_ROWS_MAX: Final = 1_000_000  # of a static table; every executor holds it whole
INDEXED_ARCS_MIN: Final = 32  # from so many select arcs of one space on, an index matches them; fewer are columns
TRY_SECONDS: Final = 300.0  # time limit of a dry run of arcs, unless another is given
CLIENT_LEASE_SECONDS: Final = 10.0  # a present client without a sign of life for so long has ended
FLOW_PLANS_MAX: Final = 64  # plans of Spark that are kept: one for each space that events enter

# --- stations ---
FORM_FIELDS_MAX: Final = 200  # of one type
INT_MIN: Final = -(2**63)  # of a field of a form: 64 bits, as in SQL and other programs
INT_MAX: Final = 2**63 - 1  # the same
FORM_COLUMNS_MAX: Final = 200  # of one line of a template
CONDITION_CHARS_MAX: Final = 2_000  # written into one field of a query
CONDITIONS_MAX: Final = 100  # in one field of a query
DOSSIER_CHARS_MAX: Final = 200  # of a name
COPIES_MAX: Final = 10_000  # made at once
MAIL_MESSAGES: Final = 500  # that one transaction of ship or get takes along
SEARCH_ROWS: Final = 5_000  # read at a time by a query
INDEX_ROWS: Final = 2_000  # filed in one transaction when an index is made for messages that are there
SCANNED_MAX: Final = 5_000  # messages that a query over nodes reads without Spark: of all, or through an index of each
IMAGES_MAX: Final = 1_000_000  # of one answer
SQL_ROWS_MAX: Final = 1_000_000  # of one answer
SQL_BYTES_MAX: Final = 256 * 1024 * 1024  # the same in characters
SQL_CHARS_MAX: Final = 100_000  # of a statement
SQL_SECONDS: Final = 300.0  # time limit of a statement, unless another is given
QUERY_SECONDS: Final = 180.0  # time limit of a query over nodes, unless another is given
QUERY_SECONDS_MAX: Final = 3_600.0  # that a query may ask for
NODE_SECONDS: Final = 10.0  # a node that does not answer for so long is down
LOGIN_SECONDS: Final = 12 * 3_600.0  # a login lasts

# --- procedures ---
PROCEDURE_SKETCHES_MAX: Final = 20  # messages that one procedure collects and creates
PROCEDURE_COPIES_MAX: Final = 100  # of one message
EXPRESSION_DEPTH_MAX: Final = 20  # nested calls of functions
SEARCH_TRIES_MAX: Final = 100_000  # candidates that one message is compared with; more are an error
CANDIDATE_ROWS: Final = 200  # candidates of one value, read at a time
CHAIN_MAX: Final = 100  # procedures that handle a message one after another with no person in between
WAITING_MAX: Final = 1_000  # working sets shown at once, unless more are asked for
NODE_PAUSE_SECONDS: Final = 15.0  # before the engine asks a node again that did not answer

# --- counters ---
COUNTER_MESSAGES: Final = 1_000  # handed over in one commit

# --- spheres ---
SPHERE_ID_CHARS_MAX: Final = 200  # of a sphere, or of an entity of another machine
SPHERE_SENDS_MAX: Final = 10_000  # of one sphere; all are undone in one transaction
REASON_CHARS_MAX: Final = 1_000  # why a sphere was aborted, or an attempt failed
STATES_MAX: Final = 100  # of one machine
HEARTBEAT_SECONDS: Final = 2.0  # unless a sphere says another interval
HEARTBEAT_SECONDS_MIN: Final = 0.05  # faster would keep the store busy with nothing else
CHECK_SECONDS: Final = 5.0  # check interval of the compensation engine, unless another is given
CHECK_SECONDS_SERVED: Final = 15.0  # of a check that is asked for through a server
CHECK_SECONDS_MAX: Final = 3_600.0  # longest check interval
GRACE_SECONDS: Final = 0.25  # for heartbeats that waited for the store; SQLite looks every 0.1 s whether it is free
CHECKS_MAX: Final = 10  # intervals after which a single check ends, if the store blocks it
RUNNING_CHECKS: Final = 12  # intervals without heartbeats for an owner whose thread is known to run
COMMIT_SECONDS: Final = 60.0  # time limit of a sphere's commit, unless another is given
SETTLED_SECONDS: Final = 1.0  # a settled share of another's sphere is recorded within this
RETRY_SECONDS: Final = 0.2  # before a commit tries a queue on hold again

# --- looking after a room ---
DISK_BYTES_LOW: Final = 2 * 1024**3  # less space is worth a warning
DISK_BYTES_MIN: Final = 200 * 1024**2  # with less, a large send may be refused
SAMPLE_MESSAGES: Final = 2_000  # the newest messages, which the doctor reads without --deep
FINDINGS_MAX: Final = 10  # reported by one check; it says how many more there are
EXAMINED_MAX: Final = 1_000  # spheres, or messages with a fault, that one check goes through
OVERDUE_SECONDS: Final = 60.0  # work that is overdue by so much is stuck
WAITED_SECONDS: Final = 300.0  # a message that a running engine has not taken for so long is stuck
GROWING_SECONDS: Final = 3_600.0  # an error queue grows if messages came within this
TOP_SECONDS: Final = 2.0  # between two pictures of postroom top
TOP_JOURNAL_ROWS: Final = 100_000  # the newest, in which postroom top looks for the engine's steps
TOP_REREAD_ROWS: Final = 10_000  # of those, at the next picture: numbers are not always seen in their order
TOP_STEPS: Final = 5  # shown

ARCHIVE_LINES: Final = 100_000  # of the journal in one file of an archive
ARCHIVE_PAGE_BYTES: Final = 1024 * 1024  # of such a file, read at a time to find a message
BACKUP_PAGES: Final = 4_096  # of a file that are copied between two looks at the progress
BACKUP_ROWS: Final = 5_000  # of a table, likewise
RETENTION_DAYS_MAX: Final = 36_500  # that an operator may set
UPKEEP_ROWS: Final = 1_000  # of one kind that one transaction removes
UPKEEP_SECONDS: Final = 600.0  # a running engine deletes expired records this often
GROWN_ROWS: Final = 100_000  # of one kind are worth a note

# --- access and server ---
OBJECT_CHARS_MAX: Final = 1_000  # of what a grant is for
TOKEN_DAYS_MAX: Final = 3_650  # until a token expires, if it does
IDENTITIES_KNOWN_MAX: Final = 10_000  # tokens whose rights a server remembers until one changes
LOGIN_TRIES: Final = 5  # that may fail from one address before the next has to wait; ten times as many for a name
LOGIN_WAIT_SECONDS_MAX: Final = 60.0  # that someone waits who has failed very often
LOGINS_AT_ONCE: Final = 4  # passwords that are checked at a time, with 64 MB each
LOGINS_REMEMBERED_MAX: Final = 10_000  # names and addresses that have failed or succeeded
PAGE_FIELDS_MAX: Final = 2_000  # of a form that a browser sends
PAGE_BYTES_MAX: Final = 8 * 1024 * 1024  # of all that such a form says
DESK_ROWS: Final = 100  # of a list on a page, until one asks for all
QUERY_ROWS: Final = 100  # of what a query has found, until one asks for all
ASKING_SECONDS: Final = 0.3  # after which a page says how far a query or a try is, instead of waiting for it
ASKINGS_AT_ONCE: Final = 4  # of all users of a server; others wait for their turn
ASKINGS_OF_ONE: Final = 4  # that one user may have begun
ASKINGS_KEPT_MAX: Final = 32  # whose answers are kept for the next page
ASKINGS_KEPT_ROWS_MAX: Final = 200_000  # of all these answers
COMPARED_LINES_MAX: Final = 10_000  # of two versions of a program that are put side by side
TRIED_MESSAGES_MAX: Final = 5_000  # that a page compares in a dry run
BODY_SHOWN_CHARS: Final = 20_000  # of a body on a page
BODY_SHOWN_DEPTH: Final = 24  # of nested parts of a body that can be folded on a page; deeper ones are text
COUNTED_SECONDS: Final = 60.0  # after which a server counts again what came into queues and left them
OVERVIEW_RATE_SECONDS: Final = 30.0  # at least, between the counts from which rates on a page are taken
SPARK_SECONDS: Final = 120.0  # at least, that a bar of a queue on the overview is about
SPARK_BARS: Final = 30  # of a queue on the overview
SEARCHED_MESSAGES_MAX: Final = 10_000  # of a queue, or entries of the journal, that a page searches
JOURNAL_SHOWN_ROWS: Final = 100  # of the journal on a page
CAUSES_NESTED_MAX: Final = 40  # levels of what led to what that can be folded on a page
CAUSES_OPEN_MAX: Final = 30  # messages of a story up to which all of it is unfolded at first
DRAWN_SPACES_MAX: Final = 60  # of a graph that is drawn as a picture; a greater one is a table only
PROCEDURE_SKETCHES_SHOWN: Final = 100  # of a procedure that is edited on a page
META_EVENTS_SHOWN: Final = 20  # of the changes of a graph on a page
LEASES_SHOWN: Final = 1_000  # that are told at once, unless one asks for more
FAILURES_SHOWN_MAX: Final = 2_000  # of each queue for errors or dead letters that a page groups
NOTICES_MAX: Final = 1_000  # that wait for the next page of a session
REQUEST_BYTES_MAX: Final = 16 * 1024 * 1024  # of a request; a body may need four times its size as JSON
BULK_BYTES_MAX: Final = 1024 * 1024 * 1024  # of a request of JSON Lines, which is read as it comes
BULK_LINES: Final = 5_000  # of it that are sent in one commit
REQUEST_HEAD_BYTES_MAX: Final = 64 * 1024  # of the first line and the headers of a request
REQUEST_HEADERS_MAX: Final = 100  # of a request
REQUEST_HEAD_SECONDS: Final = 10.0  # for a client to send them
REQUEST_BODY_SECONDS: Final = 30.0  # for each piece of a body to come
REQUEST_KEEP_SECONDS: Final = 75.0  # a connection stays open without a request
CONNECTIONS_MAX: Final = 12_000  # open at a time
REQUESTS_AT_ONCE: Final = 32  # that work on the room, besides plain sends
REQUEST_QUEUE_MAX: Final = 2_000  # that wait for it; more are refused
FOLLOWER_EVENTS_MAX: Final = 1_000  # that a follower has not read; one that falls behind by more is cut off
GAP_SECONDS: Final = 5.0  # on PostgreSQL, a follower waits so long for a number that is missing
FOLLOW_LOOK_SECONDS: Final = 0.02  # between two looks for new events while anyone follows
FOLLOW_PING_SECONDS: Final = 15.0  # a follower hears at least this often
LONG_POLL_SECONDS_MAX: Final = 300.0  # that one request waits for a message
STOP_SECONDS: Final = 20.0  # a server that is told to stop lets requests finish for so long
REPEATS_BYTES_MAX: Final = 64 * 1024 * 1024  # of answers that a server remembers by their Idempotency-Key
LISTED_MAX: Final = 10_000  # messages in one answer; lines and pages have the rest
SPHERES_HELD_MAX: Final = 1_000  # that a server holds for clients at a time, each with a thread
REMOTE_SECONDS: Final = 30.0  # a client waits so long for an answer, besides what it asks the server to wait
REMOTE_RETRIES: Final = 3  # of a request that may be repeated
USER_REQUESTS_PER_SECOND: Final = 10_000  # of one user, unless postroom serve is told otherwise; twice as many at once
ADDRESS_REFUSALS_PER_SECOND: Final = 5  # tokens from one address that are unknown; then it has to wait
ADDRESS_REFUSALS_AT_ONCE: Final = 100  # of them without a wait
PACES_KNOWN_MAX: Final = 10_000  # users or addresses whose requests are counted
AUDIT_SECONDS: Final = 60.0  # between two commits of refusals into the journal
AUDIT_LINES_MAX: Final = 20  # of refusals in one such commit; what is more is counted together
SPANS_MAX: Final = 2_000  # of requests that wait to be told to a collector; what is more is dropped, and counted
TELEMETRY_SECONDS: Final = 5.0  # between two reports to a collector
MEASURED_QUEUES_MAX: Final = 1_000  # that /metrics tells of, by name; the rest are one sum

COBOL_SESSIONS_MAX: Final = 500  # programs that one server has sessions for

# --- STOMP ---
STOMP_HEAD_BYTES_MAX: Final = 512 * 1024  # of the command and the headers of a frame: a message may have many
STOMP_HEADERS_MAX: Final = 120  # of a frame
STOMP_CONNECTIONS_MAX: Final = 4_000  # open at a time
STOMP_SUBSCRIPTIONS_MAX: Final = 100  # of one connection
STOMP_TRANSACTIONS_MAX: Final = 100  # open on one connection
STOMP_TRANSACTION_FRAMES_MAX: Final = 10_000  # of all open transactions of one connection
STOMP_TRANSACTION_BYTES_MAX: Final = 64 * 1024 * 1024  # of their bodies
STOMP_UNACKED: Final = 10  # messages that a subscription has and has not acknowledged, unless it says otherwise
STOMP_UNACKED_MAX: Final = 1_000  # that it may say
STOMP_LEASED_AT_ONCE: Final = 10  # messages that are read for a subscription at a time
STOMP_SENDS_MAX: Final = 1_000  # of one connection whose commit is awaited; then nothing more is read from it
STOMP_PENDING_BYTES_MAX: Final = 16 * 1024 * 1024  # of their bodies
STOMP_ID_CHARS_MAX: Final = 200  # of a subscription, a transaction, a receipt
STOMP_BEAT_SECONDS: Final = 1.0  # the shortest time between two heart-beats that the server offers and asks for
STOMP_WRITE_SECONDS: Final = 60.0  # for a client to read what was sent to it; then it is cut off

# --- engine and gateways ---
STEP_MESSAGES_MAX: Final = 40_000  # of one step
STEP_CREATED_MAX: Final = 400_000  # new messages of a step; if it led to more, the next one takes fewer
STEP_FREE_MESSAGES: Final = 8_000  # of a step whose messages look at no others: it is committed beside the next ones
PIPELINE_STEPS: Final = 2  # that are evaluated while another is committed
PIPELINE_MESSAGES_MAX: Final = 100_000  # claimed one after another before the engine checks for other work
STEP_BYTES_MAX: Final = 32 * 1024 * 1024  # bodies claimed at once
STAGED_PART_BYTES: Final = 1024 * 1024  # of a result that an executor writes into the store, in one row
STEP_SECONDS: Final = 2.0  # a step grows while it is shorter than this
LANE_SECONDS: Final = 0.5  # a step that takes longer is left apart, and messages of other queues continue
LANES_MAX: Final = 4  # steps of one feature that are left apart at a time
STEP_ROUNDS_MAX: Final = 8  # Spark jobs to settle conflicts; then the settled part is committed
TASK_ROUNDS_MAX: Final = 64  # the same inside of one task
SCAN_MESSAGES: Final = 20_000  # in one partition of a Spark scan, unless the reader says how many partitions
SCAN_PARTITIONS_MAX: Final = 1_000  # of a queue that Spark reads
STREAM_RECEIPTS_KEPT: Final = 10  # batches of a streaming query that are remembered; only the newest can come again
SWEEP_MESSAGES: Final = 5_000  # removed in one transaction
WORKER_MESSAGES_MAX: Final = 64  # of a step that a worker process of the engine evaluates beside Spark
WORKER_ARCS: Final = 200  # arcs, or rows of a table, that an event meets there count as one more message
WORKER_START_SECONDS: Final = 30.0  # for such a process to load what it evaluates with
SPARK_PATIENCE_SECONDS: Final = 1.0  # an engine that ends when idle starts Spark if messages were left for so long
WARM_SECONDS: Final = 45.0  # Spark ends workers that were idle for a minute; an idle engine gives them work before
SWEEP_IDLE_SECONDS: Final = 5.0  # an engine idle for so long sweeps
ENGINE_BALANCE_SECONDS: Final = 1.0  # between two looks at what other engines have
ENGINES_MAX: Final = 100  # on one room at a time
ENGINE_LEASE_SECONDS: Final = 15.0  # after which another engine may take over
OUTBOX_ATTEMPTS_MAX: Final = 3  # attempts, then an effect has failed and is kept
OUTBOX_BACKOFF_SECONDS: Final = 1.0  # doubled per attempt
OUTBOX_BACKOFF_SECONDS_MAX: Final = 900.0  # between two attempts
OUTBOX_RECORD_SECONDS: Final = 0.25  # of sending to one destination, after which what was sent is recorded
EFFECTS_AT_ONCE: Final = 8  # commands that run at a time
COMMAND_SECONDS: Final = 60.0  # time limit of a command, unless its TIMEOUT says otherwise
COMMAND_SECONDS_MAX: Final = 86_400  # that a TIMEOUT may say
COMMAND_OUTPUT_BYTES_MAX: Final = 64 * 1024  # of a command's output, kept in the journal
COMMAND_BYTES_MAX: Final = 4 * 1024**3  # of memory of one process of a command
COMMAND_OPEN_FILES_MAX: Final = 1_024  # of one command

# --- gateways ---
GATEWAYS_MAX: Final = 1_000  # of a room
GATEWAY_SETTING_CHARS_MAX: Final = 2_000  # one setting of a gateway
GATEWAY_ATTEMPTS: Final = 8  # to send a message, unless the gateway says otherwise; then there is an error message
GATEWAY_ATTEMPTS_MAX: Final = 100  # that a gateway may say
GATEWAY_SECONDS: Final = 30.0  # of one attempt, with the reply, unless the gateway says otherwise
GATEWAY_SECONDS_MAX: Final = 600.0  # that a gateway may say
GATEWAY_RUN: Final = 64  # messages to one destination that are sent one after another before others have their turn
REPLY_BYTES_MAX: Final = 4 * 1024 * 1024  # of a partner's reply; a longer one is an error
CIRCUIT_FAILURES: Final = 5  # in a row after which a host is left alone
CIRCUIT_SECONDS: Final = 30.0  # for so long; then one message is tried
RETRY_AFTER_SECONDS_MAX: Final = 3_600.0  # that a partner may ask us to wait
SECRET_BYTES_MAX: Final = 65_536  # of a file that has a secret
GATEWAY_TOLD_CHARS_MAX: Final = 200  # of what a partner answered, in an error
REQUEST_SECONDS: Final = 30.0  # a request waits for its answer; then it gets a place to ask
REQUEST_KEPT_SECONDS: Final = 86_400.0  # an answer can be asked for
STREAM_FILES_MAX: Final = 10_000  # of a folder that one batch of a stream may take
STREAM_FILES: Final = 100  # the same, unless the gateway says otherwise
STREAM_EVENTS_MAX: Final = 10_000_000  # of Kafka that one batch may take; events of a rate in a second
STREAM_EVENTS: Final = 100_000  # of Kafka, unless the gateway says otherwise
STREAM_FILE_BYTES_MAX: Final = 256 * 1024 * 1024  # of a file of CSV, Parquet or Avro, which is read whole
STREAM_STATES_READ: Final = 20_000  # rows of an arc's state that a batch reads together; more are read by their keys
STREAM_HELD_SECONDS: Final = 0.5  # between two looks at a queue on hold that a batch waits for
ARRIVALS_AT_ONCE: Final = 256  # messages from outside that one commit stores
SEQUENCES_MAX: Final = 1_000  # of reliable messaging that one gateway receives
SEQUENCE_WINDOW: Final = 1_000  # numbers after the lowest that is missing; what is further ahead is not taken
SEQUENCE_MESSAGES: Final = 10_000  # of a sequence that we send; then it is terminated, and the next one begins
SEQUENCE_AT_ONCE: Final = 8  # of its messages that are under way at a time
WEBHOOK_AGE_SECONDS: Final = 300.0  # of a signed request; an older one is refused
MAIL_RECIPIENTS_MAX: Final = 100  # of one mail
MAIL_PARTS_MAX: Final = 100  # of one mail
