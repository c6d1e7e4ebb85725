/** How many connections there are, and with how many requests. */
import type http from 'node:http';
import type { Socket } from 'node:net';

/** The maximum of connections without a session, and as many with one. */
const MAX_CONNECTIONS = 256;

/**
 * However many connections strangers hold, there is room for a browser with a session; and a connection has one request
 * at a time: hundreds can come in one packet, and each would take its memory before the first is answered.
 */
export class Connections {
  /** Those that showed no session yet, the oldest first. */
  readonly #strangers = new Set<Socket>();
  /** Those that did, the one longest without a request first. */
  readonly #admitted = new Set<Socket>();
  readonly #busy = new Set<Socket>();

  constructor(server: http.Server) {
    server.on('connection', (socket: Socket) => {
      this.#strangers.add(socket);
      socket.once('close', () => {
        for (const sockets of [this.#strangers, this.#admitted, this.#busy]) sockets.delete(socket);
      });
      const [oldest] = this.#strangers;
      if (this.#strangers.size > MAX_CONNECTIONS) oldest?.destroy();
    });
  }

  /** Whether a request may be looked at. A second one before the answer to the first ends the connection. */
  begin({ socket }: http.IncomingMessage, response: http.ServerResponse): boolean {
    if (socket.destroyed) return false;
    if (this.#busy.has(socket)) {
      socket.destroy();
      return false;
    }
    this.#busy.add(socket);
    const end = () => void this.#busy.delete(socket);
    response.once('finish', end).once('close', end);
    return true;
  }

  /** Its request showed a session. */
  admit(socket: Socket): void {
    this.#strangers.delete(socket);
    this.#admitted.delete(socket);
    this.#admitted.add(socket);
    if (this.#admitted.size <= MAX_CONNECTIONS) return;
    // A stream that is read goes on.
    const idle = [...this.#admitted].find((each) => !this.#busy.has(each));
    (idle ?? socket).destroy();
  }
}
