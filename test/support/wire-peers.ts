/** Peers that accept a connection, and then do not do what a server or a proxy does. */
import type { Socket } from 'node:net';

export const BAD_PEERS = {
  'closes at once': (socket: Socket) => void socket.end(),
  'closes after the request': (socket: Socket) => void socket.once('data', () => socket.end()),
  resets: (socket: Socket) => void socket.once('data', () => socket.resetAndDestroy()),
  'is silent': () => undefined,
  'answers half a header': (socket: Socket) => void socket.once('data', () => socket.end('HTTP/1.1 200 O')),
  'answers garbage': (socket: Socket) => void socket.once('data', () => socket.end('220 mail.example.org ESMTP\r\n')),
} as const;
export type BadPeer = keyof typeof BAD_PEERS;
