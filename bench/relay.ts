/**
 * A long wire: a relay of TCP connections on 127.0.0.1 that takes half of the round trip in each direction, and sends so
 * many bytes a second in each.
 */
import { once } from 'node:events';
import net from 'node:net';
import { performance } from 'node:perf_hooks';

export interface Wire {
  readonly roundTripMs: number;
  /** In each direction, all connections together. */
  readonly bytesPerSecond?: number;
}

export interface Relay {
  readonly port: number;
  /** So far; calls beside each other are one. */
  readonly roundTrips: () => number;
  /** All requests so far, each counted. */
  readonly requests: () => number;
  readonly close: () => Promise<void>;
}

/** What may be on the wire in one direction of a connection. */
const WINDOW_BYTES = 4 * 1024 * 1024;

/** Counts the round trips of which each had to wait for the one before: calls beside each other are one. */
class RoundTrips {
  /** By the connection of a request without a response: the number of its round trip. */
  readonly #ofRequest = new Map<net.Socket, number>();
  count = 0;
  requests = 0;

  begin(client: net.Socket): void {
    if (this.#ofRequest.has(client)) return;
    this.#ofRequest.set(client, this.count + 1);
    this.requests += 1;
  }

  end(client: net.Socket): void {
    this.count = Math.max(this.count, this.#ofRequest.get(client) ?? 0);
    this.#ofRequest.delete(client);
  }
}

/** One direction for all connections. */
class Direction {
  readonly #wire: Wire;
  #freeAt = 0;

  constructor(wire: Wire) {
    this.#wire = wire;
  }

  carry(from: net.Socket, to: net.Socket, onDelivered: () => void = () => {}): void {
    const { roundTripMs, bytesPerSecond = Number.POSITIVE_INFINITY } = this.#wire;
    let onTheWay = 0;
    // Timers of different lengths that end in the same millisecond come in any order.
    const inOrder: (() => void)[] = [];
    const deliver = (bytes: number, send: () => void) => {
      const now = performance.now();
      this.#freeAt = Math.max(now, this.#freeAt) + (bytes * 1000) / bytesPerSecond;
      inOrder.push(send);
      setTimeout(() => inOrder.shift()?.(), this.#freeAt + roundTripMs / 2 - now);
    };
    from.on('data', (bytes: Buffer) => {
      onTheWay += bytes.length;
      if (onTheWay > WINDOW_BYTES) from.pause();
      deliver(bytes.length, () => {
        onTheWay -= bytes.length;
        from.resume();
        to.write(bytes);
        onDelivered();
      });
    });
    from.on('end', () => deliver(0, () => to.end()));
    from.on('error', () => to.destroy());
    from.on('close', () => deliver(0, () => to.destroy()));
  }
}

export async function startRelay(targetPort: number, wire: Wire): Promise<Relay> {
  const [up, down] = [new Direction(wire), new Direction(wire)];
  const sockets = new Set<net.Socket>();
  const roundTrips = new RoundTrips();
  const server = net.createServer({ allowHalfOpen: true, noDelay: true }, (client) => {
    const target = net.connect({ port: targetPort, host: '127.0.0.1', allowHalfOpen: true, noDelay: true });
    for (const socket of [client, target]) sockets.add(socket.once('close', () => sockets.delete(socket)));
    client.on('data', () => roundTrips.begin(client));
    up.carry(client, target);
    down.carry(target, client, () => roundTrips.end(client));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('the relay has no port');
  return {
    port: address.port,
    roundTrips: () => roundTrips.count,
    requests: () => roundTrips.requests,
    close: async () => {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}
