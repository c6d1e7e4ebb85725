/**
 * All that goes to a service and comes of it: the requests of each operation, word for word, over SOAP and as each release
 * of REST, what they return, and what is said of calls that fail on the way. Wrong answers: calls.txt. A step is printed
 * where it differs from that of the release before.
 */
import fs from 'node:fs';
import path from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { Sandbox } from '../../simulator/sandbox.ts';
import type { Log } from '../../src/agent/ports/host.ts';
import { loadConfig } from '../../src/config/load.ts';
import { type Connection, connect } from '../../src/daemon/connection.ts';
import { asJobtailError } from '../../src/errors.ts';
import type { JobId, LiveFileKey } from '../../src/job.ts';
import { HttpClient } from '../../src/remote/http/http-client.ts';
import { RELEASE_NAMES, type ReleaseName } from '../../src/remote/rest/releases.ts';
import { hurry } from '../support/held-clock.ts';
import { temporaryDirectory } from '../support/temp-directory.ts';
import { jobId, taskId } from '../support/wire-remote.ts';

const { signal } = new AbortController();
const JOB = jobId('501');
const NOW = Date.UTC(2026, 10, 5, 12, 30, 15, 250);
const KEY = 'the-private-key-of-nobody';
/** What a reader of XML may lose, as a text and in a name. */
const HOSTILE = ' \ufeff]]> &amp;&#13;\r\n\r<![CDATA[x]]>\u0085\u2028\u{1f600}e\u0301\x1b[0m\x00\t\n\n';
const NAME = `/7001/${HOSTILE.replace('\x00', '')}`;
const USER = { username: 'alice', password: 'correct horse', token: 'alices.token+/=' };

type Step = readonly [what: string, work: (world: World) => Promise<unknown>];

interface World extends Connection {
  readonly sandbox: Sandbox;
  readonly passwordFile: string;
}

const parts = (job: JobId, ...wanted: readonly (readonly [string, LiveFileKey['file'], number])[]): Step => [
  `parts of ${job}: ${wanted.map((each) => each.join(' ')).join(', ')}`,
  async ({ remote }) => {
    const asked = wanted.map(([task, file, offset]) => ({ taskId: taskId(task), file, offset }));
    const { parts: sent, refused, beginning } = await remote.readParts(job, asked, signal);
    await beginning?.release();
    const read = sent.map(async ({ content, ...part }) => {
      const text = String(await content.read(0, content.length));
      await content.release();
      return { ...part, text: text.length > 60 ? `${text.length} bytes` : text };
    });
    return { parts: await Promise.all(read), refused, ...(beginning && { beginning: beginning.length }) };
  },
];
const download = (name: string): Step => [
  `file ${JSON.stringify(name)}`,
  async ({ remote }) => {
    const pieces: Buffer[] = [];
    await remote.downloadFile(JOB, name, (bytes) => void pieces.push(Buffer.from(bytes)), signal, 77_000);
    return Buffer.concat(pieces).toString('latin1');
  },
];
const listing: Step = [
  'listing',
  async ({ remote }) => {
    const names = await remote.listChangedFiles(JOB, signal);
    return { names: [...names], ...(names.stamps && { stamps: names.stamps.size }) };
  },
];
const spoilt = (fault: Parameters<Sandbox['faults']['add']>[0], [what, work]: Step = listing): Step => [
  `${what}, with ${JSON.stringify(fault).replaceAll(/(.{150}).*/g, '$1...')}`,
  async (world) => {
    world.sandbox.faults.add(fault);
    return await work(world).finally(() => world.sandbox.faults.clear());
  },
];
const STEPS: readonly Step[] = [
  ['jobs', ({ jobService }) => jobService?.listJobs(signal) ?? Promise.resolve()],
  ['job 501', ({ jobService }) => jobService?.getJob(JOB, signal) ?? Promise.resolve()],
  ['job 999', ({ jobService }) => jobService?.getJob(jobId('999'), signal) ?? Promise.resolve()],
  listing,
  ['listing of 999', ({ remote }) => remote.listChangedFiles(jobId('999'), signal)],
  parts(JOB, ['9001', 'stdout', 0], ['9001', 'stderr', 0], ['9001', 'log', 0], ['9002', 'progress', 0]),
  parts(JOB, ['9001', 'progress', 0]),
  parts(JOB, ['9001', 'stdout', 4], ['9001', 'stderr', 1_000]),
  parts(JOB, ['9003', 'stdout', 0]),
  parts(jobId('999'), ['9001', 'stdout', 0]),
  download('/7001/stdout.txt'),
  download('/7001/out/result <&>.bin'),
  download('/7001/none'),
  download(NAME),
  [
    'a transfer',
    async ({ remote }) => {
      const method = await remote.getTransferMethod(JOB, signal);
      if (method !== null) await remote.endTransfer(JOB, method, signal);
      return method;
    },
  ],
  [
    'a session that is lost',
    async (world) => {
      world.sandbox.expireSessions();
      return await listing[1](world);
    },
  ],
  spoilt({ kind: 'fault', text: 'A session has expired', times: 1 }),
  spoilt({ kind: 'fault', text: 'The job is of another user & <secret>' }),
  spoilt({ kind: 'http', status: 429, headers: { 'retry-after': '7' }, body: '' }),
  spoilt({ kind: 'truncate', afterBytes: 90 }, parts(JOB, ['9001', 'stdout', 0])),
  spoilt({ kind: 'reset', afterBytes: 90 }, download('/7001/out/result <&>.bin')),
  download(`/7001/${'x'.repeat(60)}`),
  spoilt({ kind: 'fault', text: `${KEY} is no key` }, [
    'the end of a transfer',
    ({ remote }) => {
      const credentials = { username: 'alice', privateKey: KEY, publicKey: 'ssh-ed25519 AAAA' };
      const method = { serverHostname: 'h', sharedBasepath: '/s', protocol: 'SftpScp', credentials } as const;
      return remote.endTransfer(JOB, method, signal);
    },
  ]),
  [
    'another password',
    async (world) => {
      fs.writeFileSync(world.passwordFile, 'another one');
      world.sandbox.expireSessions();
      return await listing[1](world);
    },
  ],
];

/** What is another one in each run. */
function shown(text: string, sandbox: Sandbox): string {
  return text
    .replaceAll(sandbox.baseUrl, 'http://HOST')
    .replaceAll(new URL(sandbox.baseUrl).host, 'HOST')
    .replaceAll(path.dirname(sandbox.directory), 'DIR')
    .replaceAll(/-----BEGIN[^-]*-----[^"]*-----END[^-]*-----(?:\\n|&#xA;|\n)?/g, 'KEY')
    .replaceAll(/ssh-rsa [\w+/=]+|ecdsa-\S+ [\w+/=]+|ssh-ed25519 [\w+/=]+/g, 'PUBLIC-KEY')
    .replaceAll(/[0-9a-f]{8}-[0-9a-f-]{27}/g, 'CODE');
}

async function serve(protocol: 'soap' | 'rest', version: string) {
  const directory = temporaryDirectory();
  const release = protocol === 'rest' ? { release: version as ReleaseName } : {};
  const habits = { keyFormat: 'ec-pem', serverHostname: 'login.example.org:22', transferUsername: 'alice' } as const;
  const sandbox = await Sandbox.start({
    directory: path.join(directory, 'cluster'),
    users: [USER],
    clock: () => NOW,
    habits: { ...habits, sharedRoot: '/scratch', ...release },
  });
  onTestFinished(() => sandbox.close());
  const tasks = ['9001', '9002'].map((id, index) => ({ taskId: id, specificationId: `700${index + 1}` }));
  const { files } = (await sandbox.submitJob({ jobId: JOB, tasks })).tasks[0] ?? {};
  if (files === undefined) throw new Error('the job has no task');
  fs.writeFileSync(files.stdout, 'first\nřádek <&> "two"\n');
  fs.writeFileSync(files.log, 'x'.repeat(3_000));
  fs.writeFileSync(files.progress, HOSTILE);
  fs.mkdirSync(path.join(path.dirname(files.stdout), 'out'), { recursive: true });
  fs.writeFileSync(path.join(path.dirname(files.stdout), 'out', 'result <&>.bin'), Buffer.from([0, 255, 10, 65]));
  fs.writeFileSync(path.join(path.dirname(files.stdout), path.basename(NAME)), 'by its name');
  const soap = {
    ...{ fileTransferUrl: sandbox.fileTransferUrl, jobsUrl: sandbox.jobsUrl },
    ...{ namespace: sandbox.namespace, soapVersion: version },
  };
  const service = { protocol, baseUrl: sandbox.baseUrl, ...(protocol === 'soap' ? soap : {}) };
  fs.writeFileSync(path.join(directory, 'password'), USER.password, { mode: 0o600 });
  const file = path.join(directory, 'config.yaml');
  const auth = { username: USER.username, passwordFile: 'password' };
  fs.writeFileSync(file, JSON.stringify({ service, auth, mirror: { directory: 'm' }, state: { directory: 's' } }));
  fs.mkdirSync(path.join(directory, 's'));
  return { sandbox, config: await loadConfig(file), passwordFile: path.join(directory, 'password') };
}

/** The text of each step. */
async function played(protocol: 'soap' | 'rest', version: string): Promise<Map<string, string>> {
  const { sandbox, config, passwordFile } = await serve(protocol, version);
  let lines: string[] = [];
  const requests = new Map<string, string>();
  let step = 'the connection';
  const say =
    (level: string) =>
    (fields: object, phrase: string): void => {
      const text = JSON.stringify(fields).replaceAll(/"(tookMs|durationMs|pauseMs)":\d+/g, '"$1":MS');
      lines.push(`${level} ${phrase} ${text}`);
    };
  const log: Log = { debug: say('debug'), info: say('info'), warn: say('warn'), error: say('error') };
  const kept = new Map<string, string>();
  const capabilities = {
    get: (name: string) => kept.get(name),
    set: (name: string, value: string) => void kept.set(name, value),
  };
  const newClient = (options: ConstructorParameters<typeof HttpClient>[0]) => {
    const client = new HttpClient(options);
    const { limits } = options;
    lines.push(`limits ${JSON.stringify(limits)}`);
    const request = client.request.bind(client);
    client.request = (asked) => {
      const { method, url, headers, body = '', totalMs, headersMs, isRepeatable, takesAnyBody } = asked;
      // A sign-in is for all who wait for it.
      if (!url.includes('/UserAndLimitationManagement/')) expect(asked.signal).toBe(signal);
      const settings = JSON.stringify({ ...headers, totalMs, headersMs, isRepeatable, takesAnyBody });
      const text = `${method} ${url} ${settings}${body.length === 0 ? '' : `\n  ${body}`}`;
      const same = shown(text, sandbox);
      const first = requests.get(same);
      lines.push(first === undefined ? text : `${method} as for ${first}`);
      requests.set(same, first ?? step);
      return request(asked);
    };
    return client;
  };
  const connection = await connect(config, log, { newClient, capabilities, signsInAgain: true });
  onTestFinished(() => connection.close());
  const texts = new Map<string, string>();
  const end = () => {
    texts.set(step, shown(lines.map((line) => `  ${line}`).join('\n'), sandbox));
    lines = [];
  };
  end();
  for (const [what, work] of STEPS) {
    step = what;
    const result = await work({ ...connection, sandbox, passwordFile }).then(
      (value) => JSON.stringify(value, (_, inner) => (typeof inner === 'bigint' ? `${inner}` : inner)),
      (thrown) => {
        const { code, message, hint = '', retryAfterMs } = asJobtailError(thrown);
        return `${code}: ${message}${hint === '' ? '' : ` (${hint})`}${retryAfterMs === undefined ? '' : ` after ${retryAfterMs} ms`}`;
      },
    );
    lines.push(`= ${result}`);
    end();
  }
  step = 'what is known in the end';
  for (const [name, value] of kept) lines.push(`${name} = ${value}`);
  end();
  return texts;
}

test.each([
  ['soap', ['1.2', '1.1']],
  ['rest', RELEASE_NAMES],
] as const)('over %s, each request is sent and each answer is read as is written here', async (protocol, versions) => {
  hurry();
  // No pause is another one in each run.
  vi.spyOn(Math, 'random').mockReturnValue(0.5);
  let all = '';
  let before = new Map<string, string>();
  const lives = await Promise.all(versions.map(async (version) => [version, await played(protocol, version)] as const));
  for (const [version, texts] of lives) {
    all += `${protocol} ${version}\n\n`;
    for (const [what, text] of texts) if (before.get(what) !== text) all += `- ${what}\n${text}\n`;
    all += '\n';
    before = texts;
  }
  await expect(all).toMatchFileSnapshot(`printed-${protocol}.txt`);
});
