/** What holds for the connections of every client in this process or thread: HTTP, TLS, PostgreSQL. */
import net from 'node:net';

/** Time for each address of a name but the last: a round trip may exceed the 250 ms of Node.js. */
const ADDRESS_MS = 2_000;

net.setDefaultAutoSelectFamilyAttemptTimeout(Math.max(ADDRESS_MS, net.getDefaultAutoSelectFamilyAttemptTimeout()));
