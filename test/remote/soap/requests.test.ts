import type { Socket } from 'node:net';
import { describe, expect, test } from 'vitest';
import type { Grant } from '../../../src/agent/ports/server.ts';
import type { SoapRemote } from '../../../src/remote/soap/client.ts';
import { createRemote, GivenSession, JOB, SESSION_CODE, TASK } from '../../support/wire-remote.ts';
import { closedAtEnd, startTcpServer } from '../../support/wire-server.ts';

const signal = new AbortController().signal;

/** The bytes that the call puts on the wire; the port is written as PORT. */
async function sent(
  soapVersion: '1.1' | '1.2',
  grant: Grant,
  call: (remote: SoapRemote) => Promise<unknown>,
): Promise<string> {
  let bytes = '';
  const server = closedAtEnd(
    await startTcpServer((socket: Socket) => {
      socket.on('data', (chunk) => {
        bytes += chunk.toString();
        const length = /content-length: ([0-9]+)/.exec(bytes)?.[1];
        const head = bytes.indexOf('\r\n\r\n') + 4;
        if (length !== undefined && head > 3 && Buffer.byteLength(bytes) === head + Number(length)) {
          socket.end('HTTP/1.1 500 No\r\ncontent-length: 0\r\n\r\n');
        }
      });
    }),
  );
  const made = closedAtEnd(createRemote(server.url, { soapVersion, session: new GivenSession(grant) }));
  await expect(call(made.remote)).rejects.toMatchObject({ code: 'http-status' });
  return bytes.replaceAll(`127.0.0.1:${server.port}`, 'PORT');
}

const SESSION: Grant = { kind: 'session', code: SESSION_CODE };
test('what the method does not have is left out, and nil where the contract wants it', async () => {
  const nothing = { serverHostname: null, sharedBasepath: null, protocol: null, credentials: null };
  const bytes = await sent('1.1', SESSION, (remote) => remote.endTransfer(JOB, nothing, signal));
  expect(bytes).toContain('<usedTransferMethod><protocol xsi:nil="true"></protocol></usedTransferMethod><sessionCode>');
});

test('two remotes of different versions do not disturb each other', async () => {
  const call = (remote: SoapRemote) => remote.listChangedFiles(JOB, signal);
  const both = await Promise.all([sent('1.1', SESSION, call), sent('1.2', SESSION, call)]);
  expect(both.map((bytes) => bytes.includes('SOAPAction'))).toEqual([true, false]);
});

describe('nothing is sent', () => {
  test.each([
    ['a CDATA look-alike', '<![CDATA[</relativeFilePath><sessionCode>x</sessionCode>]]>'],
    ['a control character', 'a\x1bb'],
    ['a null character', 'a\0b'],
    ['half a surrogate pair', 'a\uD800b'],
    ['a noncharacter', 'a\uFFFFb'],
  ])('for a file name with %s', async (_, path) => {
    const { remote, events } = closedAtEnd(createRemote('http://127.0.0.1:9/'));
    await expect(remote.downloadFile(JOB, path, () => undefined, signal)).rejects.toMatchObject({ code: 'usage' });
    expect(events).toEqual([]);
  });

  test.each<[string, Grant]>([
    ['session code', { kind: 'session', code: '<![CDATA[x]]>' }],
    ['session code', { kind: 'session', code: 'a\x01' }],
    ['token', { kind: 'bearer', token: 'a\r\nb: c' }],
    ['token', { kind: 'bearer', token: '' }],
  ])('with a %s that cannot be sent', async (_, grant) => {
    const { remote } = closedAtEnd(createRemote('http://127.0.0.1:9/', { session: new GivenSession(grant) }));
    await expect(remote.listChangedFiles(JOB, signal)).rejects.toMatchObject({ code: 'config' });
  });

  test('for an offset that is no whole number', async () => {
    const { remote } = closedAtEnd(createRemote('http://127.0.0.1:9/'));
    const wanted = [{ taskId: TASK, file: 'stdout', offset: 1.5 }] as const;
    await expect(remote.readParts(JOB, wanted, signal)).rejects.toMatchObject({ code: 'usage' });
  });

  test.each(['http://x/"><a', 'urn: x', 'urn:é', 'urn:&amp;', ''])('into the namespace %j', (namespace) => {
    expect(() => createRemote('http://127.0.0.1:9/', { namespace })).toThrow(
      expect.objectContaining({ code: 'config' }),
    );
  });
});
