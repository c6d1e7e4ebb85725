/** Clients that send more than they wait for: with the token or without, they cost the view little, and lock no one out. */
import { once } from 'node:events';
import net from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { until } from '../../support/e2e-until.ts';
import { STDOUT, ViewPlace } from '../../support/view-place.ts';

const LINES = `/api/lines?${STDOUT}`;
const MIB = 1024 * 1024;

function connected(port: number, count: number): net.Socket[] {
  const sockets = Array.from({ length: count }, () => net.connect(port, '127.0.0.1').on('error', () => {}));
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
  });
  return sockets;
}

const requestTo = (target: string, token?: string) =>
  `GET ${target} HTTP/1.1\r\nhost: localhost\r\n${token === undefined ? '' : `authorization: Bearer ${token}\r\n`}\r\n`;

const placeWithLog = () => ViewPlace.withJob(Buffer.alloc(4 * MIB, 'a line of a log\n'));

const isAnswered = (place: ViewPlace, headers = {}) =>
  place.ask(`${LINES}&bytes=4096`, { headers }).then(
    ({ status }) => status === 200,
    () => false,
  );

it('a connection with a second request before the answer to the first is ended', async () => {
  const place = await placeWithLog();
  for (const token of [undefined, place.token]) {
    const [socket] = connected(place.view.port, 1);
    if (socket === undefined) throw new Error('no connection');
    let came = 0;
    socket.on('data', (piece: Buffer) => (came += piece.length));
    socket.write(requestTo(`${LINES}&bytes=${MIB}`, token).repeat(200));
    await once(socket, 'close');
    expect(came, 'no more than the first answer').toBeLessThan(MIB + 4096);
  }
  expect(await isAnswered(place)).toBe(true);
});

it('one after the other is answered on one connection', async () => {
  const place = await placeWithLog();
  const [socket] = connected(place.view.port, 1);
  if (socket === undefined) throw new Error('no connection');
  let text = '';
  socket.on('data', (piece: Buffer) => (text += piece.toString('latin1')));
  for (let each = 1; each <= 20; each++) {
    socket.write(requestTo(`/api/generations?${STDOUT}`, place.token));
    await until('the answer', () => text.split('{"now":"g1","former":[],"began":[]}').length - 1 === each);
  }
  expect(socket.destroyed).toBe(false);
});

it('strangers that hold every connection keep no session out', async () => {
  const place = await placeWithLog();
  const strangers = connected(place.view.port, 600);
  for (const socket of strangers) socket.resume();
  // Half of them ask, the others only hold.
  for (const socket of strangers.slice(300)) socket.write(requestTo(LINES));
  await until('the ones that gave way', () => strangers.filter(({ closed }) => closed).length >= 300);
  for (let each = 0; each < 20; each++) expect(await isAnswered(place)).toBe(true);
});

it('sessions that hold every place of theirs give way to one that asks', async () => {
  const place = await placeWithLog();
  const held = connected(place.view.port, 256);
  let answered = 0;
  for (const socket of held) {
    socket.once('data', () => answered++);
    socket.write(requestTo(`/api/generations?${STDOUT}`, place.token));
  }
  await until('the answers', () => answered === held.length);
  expect(await isAnswered(place)).toBe(true);
  await until('one that gave way', () => held.filter(({ closed }) => closed).length >= 1);
});

it('windows have places, which come back', async () => {
  const place = await placeWithLog();
  // More than there are places, one after the other: read to the end, or left in the middle.
  for (let each = 0; each < 40; each++) {
    const { body } = await place.ask(`${LINES}&at=0&bytes=${MIB}`);
    expect(body.equals(Buffer.alloc(MIB, 'a line of a log\n'))).toBe(true);
    const [socket] = connected(place.view.port, 1);
    socket?.write(requestTo(`${LINES}&bytes=${MIB}`, place.token));
    socket?.once('data', () => socket.destroy());
    if (socket !== undefined) await once(socket, 'close');
  }
  const taken = Array.from({ length: 32 }, () => place.view.parts.limits.take('windows'));
  expect((await place.ask(LINES)).status).toBe(429);
  for (const release of taken) release();
  expect(await isAnswered(place)).toBe(true);
});
