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
LOCK_WAIT_SECONDS: Final = 2.0  # how long a receive without --wait waits for another user's lock
WAIT_SECONDS_MAX: Final = 86_400.0  # that one receive waits
FOLLOW_SECONDS: Final = 3_600.0  # one wait of a receive that follows; then it waits again
RECHECK_SECONDS: Final = 5.0  # a waiting receiver checks again after this, in case a wake-up was lost
REFERENCES_KNOWN_MAX: Final = 10_000  # references whose queue an open room remembers
IDEMPOTENCY_CHARS_MAX: Final = 200  # of an idempotency key
ACTOR_CHARS_MAX: Final = 100  # of a name that the journal shows
SECRET_CHARS_MAX: Final = 200  # a principal's password

# --- store ---
BUSY_SECONDS: Final = 10.0  # waiting for another writer
RESERVE_BYTES: Final = 8 * 1024 * 1024  # of disk space, kept beside a room on SQLite for when the disk is full
RESERVE_OPEN_BYTES: Final = 256 * 1024  # of them, kept to open the room
LOOK_SECONDS: Final = 0.05  # between two checks that a room's file and its reserve are still the same
RESERVE_SECONDS: Final = 0.5  # between two tries to make the reserve again
SETTLE_SECONDS: Final = 5.0  # a store tries to find out the outcome of an unconfirmed commit
KEEPALIVE_SECONDS: Final = 10  # after so much silence a peer is asked a few times whether it is there
CONFLICT_RETRIES_MAX: Final = 20  # of a transaction that conflicted with another one
JOURNAL_ROWS_MAX: Final = 1_000_000  # shown at once
STORY_MESSAGES_MAX: Final = 500  # shown at once by a trace with causes
JOURNAL_PAGE_ROWS: Final = 10_000  # read at a time when the whole journal is
DIFFERENCES_MAX: Final = 100  # shown when a journal and its room differ
PAGE_ROWS: Final = 500  # rows fetched at a time when browsing
KEY_RESERVE_MAX: Final = 4_096  # keys taken from the counter at once
KEY_TAIL: Final = 100_000  # keys per block: the part after the dot has five digits

# --- rules ---
RULE_DEPTH_MAX: Final = 200  # nested expressions in a rule body
PROGRAM_TOKENS_MAX: Final = 200_000  # words and signs of a file; the readers cost a few microseconds for each
PROGRAM_DEPTH_MAX: Final = 1_000  # brackets and elements open at once
COLLECTION_BYTES_MAX: Final = 64 * 1024 * 1024  # of one file of a collection
SLICE_KEY_BYTES_MAX: Final = 2_000  # by which a slice is known; PostgreSQL indexes no more
INDEXED_CHARS_MAX: Final = 500  # of a value in an index; longer ones are found by their beginning
ECHO_SECONDS_MAX: Final = 10 * 366 * 86_400.0  # longest timeout of an echo queue
MESSAGE_ACTIONS_MAX: Final = 10_000  # pending actions of one message
MESSAGE_OUTPUT_BYTES_MAX: Final = 32 * 1024 * 1024  # and all they say
SLOW_SECONDS: Final = 0.3  # a working set whose functions take longer is evaluated apart from the others
EVALUATION_SECONDS: Final = 10.0  # a batch that takes longer is split until the slow message is alone
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
LOOKED_UP_MAX: Final = 1_000  # messages of a node that a query reads through an index without Spark
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
REASON_CHARS_MAX: Final = 1_000  # why a sphere was aborted
STATES_MAX: Final = 100  # of one machine
HEARTBEAT_SECONDS: Final = 2.0  # unless a sphere says another interval
HEARTBEAT_SECONDS_MIN: Final = 0.05  # faster would keep the store busy with nothing else
CHECK_SECONDS: Final = 5.0  # check interval of the compensation engine, unless another is given
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
WARM_SECONDS: Final = 45.0  # Spark ends workers that were idle for a minute; an idle engine gives them work before
SWEEP_IDLE_SECONDS: Final = 5.0  # an engine idle for so long sweeps
ENGINE_LEASE_SECONDS: Final = 15.0  # after which another engine may take over
OUTBOX_ATTEMPTS_MAX: Final = 3  # attempts, then an effect has failed and is kept
OUTBOX_BACKOFF_SECONDS: Final = 1.0  # doubled per attempt
EFFECTS_AT_ONCE: Final = 8  # commands that run at a time
COMMAND_SECONDS: Final = 60.0  # time limit of a command, unless its TIMEOUT says otherwise
COMMAND_SECONDS_MAX: Final = 86_400  # that a TIMEOUT may say
COMMAND_OUTPUT_BYTES_MAX: Final = 64 * 1024  # of a command's output, kept in the journal
COMMAND_BYTES_MAX: Final = 4 * 1024**3  # of memory of one process of a command
COMMAND_OPEN_FILES_MAX: Final = 1_024  # of one command
