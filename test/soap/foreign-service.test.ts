import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { TransferMethod } from '../../src/agent/ports.ts';
import { wsdlOf } from '../../src/soap/contract.ts';
import { NAMESPACE } from '../support/wire-envelopes.ts';
import { createRemote, GivenSession, JOB, jobId, SESSION_CODE, TASK, taskId } from '../support/wire-remote.ts';
import { startTcpServer, until } from '../support/wire-server.ts';

/** PHP with its SOAP extension (Debian: php-cli and php-soap). */
function hasPhpSoap(): boolean {
  try {
    return execFileSync('php', ['-m'], { stdio: ['ignore', 'pipe', 'ignore'] })
      .toString()
      .includes('soap');
  } catch {
    return false;
  }
}

const LARGEST = jobId('9223372036854775807');
const SMALLEST = taskId('-9223372036854775808');
const METHOD: TransferMethod = {
  serverHostname: 'login.example:22',
  sharedBasepath: '/scratch/ä & <b>',
  protocol: 'SftpScp',
  credentials: { username: 'u', privateKey: '-----BEGIN-----\nAB\r\n-----END-----\n', publicKey: ' ssh-rsa "A"\r\n' },
};
const LIVE: Record<string, string> = {
  '9001/StandardOutputFile': ' Příliš\tžluťoučký\r\nkůň\r😀 ]]> &lt; <b>\n\n',
  '9001/StandardErrorFile': '',
  [`${SMALLEST}/LogFile`]: 'x'.repeat(3_000_000),
};
const FILES: Record<string, Buffer> = {
  '/9001/výsledek 1, <a>&"\'.bin': randomBytes(1_000_001),
  '9001///empty': Buffer.alloc(0),
};

const withPhp = hasPhpSoap();
const signal = new AbortController().signal;
const directory = mkdtempSync(join(tmpdir(), 'wire-php-'));
const closing: { close(): Promise<void> }[] = [];
let php: ChildProcess | undefined;
let url = '';

beforeAll(async () => {
  if (!withPhp) return;
  const base64 = (entries: Record<string, string | Buffer>) =>
    Object.fromEntries(Object.entries(entries).map(([name, bytes]) => [name, Buffer.from(bytes).toString('base64')]));
  const data = { method: METHOD, live: base64(LIVE), files: base64(FILES) };
  writeFileSync(join(directory, 'data.json'), JSON.stringify(data));
  writeFileSync(join(directory, 'service.wsdl'), wsdlOf({ namespace: NAMESPACE, url: 'http://127.0.0.1/' }));
  // PHP cannot choose a port itself, and somebody may take a free one before PHP does.
  for (let attempt = 0; attempt < 5 && php?.exitCode !== null; attempt += 1) await startPhp();
});
afterEach(async () => {
  for (const each of closing.splice(0).reverse()) await each.close();
});
afterAll(async () => {
  const ended = php && new Promise((resolve) => php?.on('exit', resolve));
  php?.kill();
  await ended;
  rmSync(directory, { recursive: true });
});

async function startPhp(): Promise<void> {
  const free = await startTcpServer(() => undefined);
  await free.close();
  url = `http://127.0.0.1:${free.port}/`;
  const script = join(import.meta.dirname, '../support/wire-service.php');
  const settings = ['-d', 'memory_limit=512M', '-d', 'display_errors=0'];
  const started = spawn('php', [...settings, '-S', `127.0.0.1:${free.port}`, script], {
    stdio: ['ignore', 'ignore', 'pipe'],
    env: {
      ...process.env,
      WIRE_WSDL: join(directory, 'service.wsdl'),
      WIRE_DATA: join(directory, 'data.json'),
      WIRE_SESSION: SESSION_CODE,
    },
  });
  php = started;
  let said = '';
  started.stderr.on('data', (chunk) => {
    said += String(chunk);
  });
  await until(() => said.includes('started') || started.exitCode !== null);
}

const title = `PHP's SoapServer over SOAP %s${withPhp ? '' : ' (skipped: no php with soap)'}`;

describe.skipIf(!withPhp).each(['1.1', '1.2'] as const)(title, (soapVersion) => {
  const remoteWith = (session = new GivenSession()) => {
    const made = createRemote(url, { soapVersion, session });
    closing.push(made);
    return made.remote;
  };

  test('GetFileTransferMethod and EndFileTransfer', async () => {
    const remote = remoteWith();
    const method = await remote.getTransferMethod(LARGEST, signal);
    expect(method).toEqual(METHOD);
    if (method !== null) await remote.endTransfer(LARGEST, method, signal);
    const other = { ...METHOD, credentials: null };
    await expect(remote.endTransfer(LARGEST, other, signal)).rejects.toMatchObject({ code: 'fault' });
  });

  test('DownloadPartsOfJobFilesFromCluster', async () => {
    const wanted = [
      { taskId: TASK, file: 'stdout', offset: 1 },
      { taskId: TASK, file: 'stderr', offset: 0 },
      { taskId: TASK, file: 'progress', offset: 0 },
      { taskId: SMALLEST, file: 'log', offset: 7 },
    ] as const;
    const { parts, refused } = await remoteWith().readParts(LARGEST, wanted, signal);
    expect(refused).toBe(0);
    const texts = await Promise.all(
      parts.map(async ({ taskId, file, content }) => [taskId, file, String(await content.read(0, content.length))]),
    );
    expect(texts).toEqual([
      [SMALLEST, 'log', 'x'.repeat(3_000_000 - 7)],
      [TASK, 'stderr', ''],
      [TASK, 'stdout', LIVE['9001/StandardOutputFile']?.slice(1)],
    ]);
    await Promise.all(parts.map(({ content }) => content.release()));
    expect(await remoteWith().readParts(LARGEST, [], signal)).toEqual({ parts: [], refused: 0 });
  });

  test('ListChangedFilesForJob and DownloadFileFromCluster', async () => {
    const remote = remoteWith();
    const names = await remote.listChangedFiles(LARGEST, signal);
    expect(names).toEqual(Object.keys(FILES));
    for (const name of names) {
      const chunks: Buffer[] = [];
      await remote.downloadFile(LARGEST, name, (bytes) => void chunks.push(bytes), signal);
      expect(Buffer.concat(chunks).equals(FILES[name] ?? Buffer.alloc(1))).toBe(true);
    }
    const missing = remote.downloadFile(LARGEST, '/none', () => undefined, signal);
    await expect(missing).rejects.toMatchObject({ code: 'not-found' });
  });

  test('faults and lost sessions', async () => {
    await expect(remoteWith().listChangedFiles(JOB, signal)).rejects.toMatchObject({
      code: 'fault',
      message: expect.stringMatching(/: \S*(Server|Receiver): There is no such job$/),
    });
    const renewed = new GivenSession({ kind: 'session', code: 'old' }, { kind: 'session', code: SESSION_CODE });
    expect(await remoteWith(renewed).listChangedFiles(LARGEST, signal)).toEqual(Object.keys(FILES));
    const lost = new GivenSession({ kind: 'session', code: 'wrong' });
    await expect(remoteWith(lost).listChangedFiles(LARGEST, signal)).rejects.toMatchObject({
      code: 'session-lost',
      message: expect.stringContaining('Session code [redacted] is not valid & <refused>'),
    });
  });
});
