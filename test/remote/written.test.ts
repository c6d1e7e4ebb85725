/** What is read of the documents of both protocols, and what each call makes of the responses to it. */
import path from 'node:path';
import { expect, test } from 'vitest';
import type { Grant, JobService, PartRequest, Remote, TransferMethod } from '../../src/agent/ports/server.ts';
import { asJobtailError } from '../../src/errors.ts';
import type { LiveFileName } from '../../src/job.ts';
import type { Operation } from '../../src/operations.ts';
import { Secrets } from '../../src/redact.ts';
import type { Value } from '../../src/remote/content/values.ts';
import { HttpClient } from '../../src/remote/http/http-client.ts';
import { RestCapabilities } from '../../src/remote/rest/capabilities.ts';
import { RestJobService, RestRemote } from '../../src/remote/rest/client.ts';
import type { CallEvent } from '../../src/remote/session-calls.ts';
import { SoapJobService, SoapRemote } from '../../src/remote/soap/client.ts';
import { expectCases, writtenBytes } from '../support/errors.ts';
import { hurry } from '../support/held-clock.ts';
import { openFilesIn, temporaryDirectory } from '../support/temp-directory.ts';
import * as wire from '../support/wire-envelopes.ts';
import { GivenSession, JOB, remoteParts, spillTo, TASK, TEST_LIMITS, taskId } from '../support/wire-remote.ts';
import { type Cuts, scanJson, scanXml, type Taking } from '../support/wire-scan.ts';
import { bodyOf, closedAtEnd, startHttpServer, until } from '../support/wire-server.ts';

const PARTS = 'DownloadPartsOfJobFilesFromCluster';
const OPERATIONS: Readonly<Record<string, Operation>> = {
  file: 'DownloadFileFromCluster',
  list: 'ListChangedFilesForJob',
  nothing: 'GetFileTransferMethod',
};
const GOOD = wire.partsResponse(wire.entry('x'));
const entryOf = (text: string) => wire.entry('|').replace(/[|]|\/out/g, () => text);
const ENVELOPES: Readonly<Record<string, (text: string) => string>> = {
  entry: (text) => wire.partsResponse(wire.entry(text)),
  texts: (text) => wire.partsResponse(entryOf(text), entryOf(text)),
  parts: wire.partsResponse,
  file: wire.fileResponse,
  list: wire.listResponse,
  begun: (text) => GOOD.replace(/x<.content>.*/, () => text),
  nothing: (text) => wire.response('GetFileTransferMethod', text),
  job: (text) => wire.response('GetCurrentInfoForJob', text),
  jobs12: (text) =>
    wire
      .response('ListJobsForCurrentUser', `<ListJobsForCurrentUserResult>${text}</ListJobsForCurrentUserResult>`)
      .replace(wire.SOAP_1_1, wire.SOAP_1_2),
  fault: (text) => wire.fault11(text),
  fault12: wire.fault12,
  body: (text) => wire.envelope(text),
  xml: (text) => text,
  good: (text) => {
    const [from = '', to = ''] = text.split(/ -> ?/);
    expect(GOOD).toContain(from);
    return GOOD.replaceAll(from, () => to);
  },
};

const NAMESPACES = { SOAP11: wire.SOAP_1_1, SOAP12: wire.SOAP_1_2, NAMESPACE: wire.NAMESPACE };
const named = (text: string) =>
  text.replaceAll(/SOAP1[12]|NAMESPACE/g, (name) => NAMESPACES[name as keyof typeof NAMESPACES]);

const plain = (value: Value): unknown =>
  value instanceof Map
    ? Object.fromEntries([...value].map(([name, inner]) => [name, plain(inner)]))
    : Array.isArray(value)
      ? value.map(plain)
      : value;
const shown = (value: Value) => shownText(JSON.stringify(plain(value)));
const resultText = (value: unknown) => (typeof value === 'string' ? value : shownText(JSON.stringify(value), 600));

function shownText(text: string, max = 200): string {
  const start = text.length > max ? `${text.slice(0, 120)}... (${text.length})` : text;
  return start.replaceAll(/\p{C}/gu, (one) => `\\u{${one.codePointAt(0)?.toString(16)}}`);
}

let hint: string | undefined;

/** A hint is shown where it is another one than before. */
function errorLines(thrown: unknown): string[] {
  const { code, message, inPlace, hint: now } = asJobtailError(thrown);
  const isSame = now === hint || now === undefined;
  hint = now ?? hint;
  return [`${code}: ${message}${inPlace ? `, in its place ${inPlace}` : ''}`, ...(isSame ? [] : [`(${hint})`])];
}

test('each document is read or refused, wherever it is cut, as is written in documents.txt', async () => {
  hint = undefined;
  await expectCases(path.join(import.meta.dirname, 'documents.txt'), (written) => {
    const [, json, word = '', text = ''] = /^(json )?(\w+)(?: (.*))?$/.exec(written) ?? [];
    const document = writtenBytes(json === undefined ? (ENVELOPES[word]?.(named(text)) ?? '') : text);
    const scanned = (cuts: Cuts) => {
      try {
        const { rest, items, contents, texts } =
          json === undefined
            ? scanXml(OPERATIONS[word] ?? PARTS, document, cuts)
            : scanJson(document, word as Taking, cuts);
        const ofItem = (item: Value, at: number) =>
          `item ${shown(item)}${contents[at] === undefined ? '' : ` and text ${contents[at]}`}`;
        // White space between names may be left, or not.
        const left = typeof rest === 'string' && items.length > 0 ? rest.trim() : rest;
        return [`rest ${shown(left)}`, ...items.map(ofItem), ...texts.map((one) => `text ${shown(String(one))}`)];
      } catch (thrown) {
        return errorLines(thrown);
      }
    };
    const isShort = document.length < 3_000;
    const result = scanned(isShort ? [] : [1_000, 70_000]);
    // Another piece may be what is found wrong.
    const codeOf = (lines: readonly string[]) =>
      lines[0]?.startsWith('rest') ? lines : /^\S+/.exec(`${lines[0]}`)?.[0];
    for (const cuts of isShort ? [1, 7] : [])
      expect(codeOf(scanned(cuts)), `${written}, cut at ${cuts}`).toEqual(codeOf(result));
    return result;
  });
});

const { signal } = new AbortController();
const CODES = ['first-code', 'second-code', 'third-code'];
const KEPT = { username: 'a', privateKey: null, publicKey: 'ssh-ed25519 A' };

interface World {
  readonly remote: Remote;
  readonly jobs: JobService;
  readonly secrets: Secrets;
  nowMs: number;
  key: TransferMethod | null;
}

/** `9002/stdout@7~100`: from byte 7 on, of which 100 are enough. */
function wantedOf(words: readonly string[]): PartRequest[] {
  return words.map((word) => {
    const [, task = TASK, file, offset, enough] = /^(?:(\d+)\/)?(\w+)@([\d.]+)(?:~(\d+))?$/.exec(word) ?? [];
    const request = { taskId: taskId(task), file: file as LiveFileName, offset: Number(offset) };
    return { ...request, ...(enough && { enoughBytes: Number(enough) }) };
  });
}

const STEPS: Readonly<Record<string, (world: World, ...words: string[]) => unknown>> = {
  list: async ({ remote }) => {
    const names = await remote.listChangedFiles(JOB, signal);
    return names.length > 9 ? names.length : [...names, ...(names.stamps ? [Object.fromEntries(names.stamps)] : [])];
  },
  parts: async ({ remote }, ...words) => {
    const { parts, refused, beginning } = await remote.readParts(JOB, wantedOf(words), signal);
    const read = parts.map(async ({ taskId: task, file, offset, relativePath, content }) => {
      const text = String(await content.read(0, content.length));
      // Past the end there is no more.
      expect(await content.read(text.length, text.length + 9)).toHaveLength(Buffer.byteLength(text) - text.length);
      await content.release();
      return `${task}/${file}@${offset} of ${relativePath}: ${shown(text)}`;
    });
    await beginning?.release();
    return [...(await Promise.all(read)), ...(beginning ? [`begun: ${beginning.length}`] : []), { refused }];
  },
  divide: ({ remote }, ...words) =>
    remote
      .divide?.(JOB, wantedOf(words))
      .map(({ length }) => length)
      .join(' and '),
  file: async ({ remote }, name = '') => {
    const pieces: Buffer[] = [];
    const length = await remote.downloadFile(JOB, name, (bytes) => void pieces.push(Buffer.from(bytes)), signal);
    return `${length} bytes: ${shown(String(Buffer.concat(pieces)))}`;
  },
  reason: ({ remote }, name = '') => remote.reasonAgainst?.(name) ?? 'it is asked for',
  key: async (world) => {
    world.key = await world.remote.getTransferMethod(JOB, signal);
    return world.key;
  },
  // After a restart, only what may be kept is left.
  restart: (world) => {
    const { given: _, ...left } = world.key ?? { serverHostname: null, sharedBasepath: null, protocol: null };
    world.key = { ...left, credentials: world.key && KEPT };
  },
  end: ({ remote, key }) => key && remote.endTransfer(JOB, key, signal),
  hide: ({ secrets }, ...words) => secrets.hide(words.join(' ')),
  job: ({ jobs }) => jobs.getJob(JOB, signal),
  jobs: async ({ jobs }) => (await jobs.listJobs(signal)).map((job) => JSON.stringify(job)),
  pass: (world, hours) => {
    world.nowMs += Number(hours) * 3_600_000;
  },
};

interface Response {
  readonly how: string | undefined;
  /** A word of the requests that it is for. */
  readonly at: string | undefined;
  readonly status: number;
  readonly type: string | undefined;
  readonly body: Buffer;
}

function responseOf(written: string): Response | undefined {
  const [, how, at, status, type, word, text = ''] =
    /^(?:(open|broken) )?(?:at (\S+): )?(\d{3})(?: ([\w.+-]+\/\S*))?(?: (?:(\w+):(?: |$))?(.*))?$/.exec(written) ?? [];
  if (status === undefined) return undefined;
  const body = word === undefined || word === 'base64' ? text : (ENVELOPES[word]?.(named(text)) ?? '');
  const bytes =
    word === 'base64' ? Buffer.from(JSON.stringify(writtenBytes(text).toString('base64'))) : writtenBytes(body);
  return { how, at, status: Number(status), type: type?.replaceAll('_', ' '), body: bytes };
}

const TYPES = { soap: 'text/xml; charset=utf-8', soap12: 'application/soap+xml', rest: 'application/json' };
type Protocol = keyof typeof TYPES;

/** What a service has that responds as written, and what it was asked. */
async function serve(protocol: Protocol) {
  const asked: string[] = [];
  const service = { asked, responses: [] as Response[], open: 0 };
  const server = closedAtEnd(
    await startHttpServer(async (request, response) => {
      const body = await bodyOf(request);
      const { pathname, searchParams } = new URL(request.url ?? '', 'http://x');
      const text = `${body}${[...searchParams].map((pair) => ` ${pair.join('=')}`).join('')}`;
      const { authorization = 'nothing', 'x-api-key': apiKey = authorization } = request.headers;
      const [, code = `${apiKey}`] =
        /<sessionCode>([^<]*)<|"SessionCode":"(.*?)"| SessionCode=(.*)/.exec(text)?.filter(Boolean) ?? [];
      const operation = /<soap:Body><(\w+)/.exec(text)?.[1];
      const members = text.replace(/,?"SessionCode":".*?"| SessionCode=.*/, '');
      const what =
        operation ??
        `${request.method} ${pathname.replace('/heappe/', '')} ${members.length > 200 ? `${members.slice(0, 120)}... (${body.length} bytes)` : members}`;
      asked.push([CODES[0], 'x'.repeat(100)].includes(code) ? what : `${what} by ${code}`);
      const once = service.responses.findIndex(({ at }) => at === undefined);
      const isLast = service.responses.filter(({ at }) => at === undefined).length < 2;
      const found =
        service.responses.find(({ at }) => at !== undefined && what.includes(at)) ?? service.responses[once];
      if (found?.at === undefined && !isLast) service.responses.splice(once, 1);
      const {
        status = 200,
        body: bytes = '',
        how,
        type = bytes.length > 0 || protocol !== 'rest' ? TYPES[protocol] : '-/-',
      } = found ?? {};
      response.writeHead(status, type === '-/-' ? {} : { 'content-type': type, location: '/elsewhere' });
      if (how === 'broken') response.write(bytes, () => response.destroy());
      else if (how === 'open') {
        service.open += 1;
        response.once('close', () => void service.open--).write(bytes);
      } else response.end(bytes);
    }),
  );
  return { service, server };
}

/** A client of such a service. */
function connect(
  protocol: Protocol,
  grant: string,
  url: string,
  world: Pick<World, 'secrets' | 'nowMs'>,
  directory: string,
) {
  const codes = CODES.map((code) => ({ kind: 'session', code: grant === 'long' ? 'x'.repeat(100) : code }) as const);
  const others: Readonly<Record<string, Grant>> = {
    token: { kind: 'bearer', token: 'x'.repeat(100) },
    key: { kind: 'api-key', key: 'alice:password' },
    odd: { kind: 'session', code: 'c<&>' },
    cdata: { kind: 'session', code: '<![CDATA[x]]>' },
    control: { kind: 'session', code: 'a\x01' },
    lines: { kind: 'bearer', token: 'a\r\nb: c' },
    empty: { kind: 'bearer', token: '' },
  };
  const made = { events: [] as CallEvent[], kept: new Map<string, string>(), changes: [] as string[] };
  const all = {
    ...remoteParts(made.events),
    http: closedAtEnd(new HttpClient({ limits: TEST_LIMITS })),
    session: new GivenSession(...(grant in others ? [others[grant] as Grant] : codes)),
    spill: spillTo(directory, 1_000),
    secrets: world.secrets,
    isSessionFault: (words: string) => /sezení/i.test(words),
  };
  if (protocol !== 'rest') {
    const soapVersion = protocol === 'soap12' ? '1.2' : '1.1';
    const ofSoap = { ...all, namespace: wire.NAMESPACE, url, soapVersion } as const;
    return { ...made, remote: new SoapRemote(ofSoap), jobs: new SoapJobService(ofSoap) };
  }
  const onChange = (what: string) => void made.changes.push(what);
  const capabilities = new RestCapabilities({ kept: made.kept, onChange, now: () => world.nowMs });
  const ofRest = { ...all, url: `${new URL(url).origin}/heappe`, capabilities };
  return { ...made, remote: new RestRemote(ofRest), jobs: new RestJobService(ofRest) };
}

test('each call makes the requests, and brings what it returns or throws, as is written in calls.txt', async () => {
  const directory = temporaryDirectory();
  hurry();
  hint = undefined;
  await expectCases(path.join(import.meta.dirname, 'calls.txt'), async (written) => {
    const [first = '', ...segments] = written.split(' | ');
    const [protocol, grant = ''] = first.split(' ') as [Protocol, string?];
    const { service, server } = await serve(protocol);
    const state = { secrets: new Secrets(), nowMs: 0, key: null };
    const made = connect(protocol, grant, server.url, state, directory);
    const world: World = Object.assign(state, { remote: made.remote, jobs: made.jobs });
    const lines: string[] = [];
    let isNew = true;
    for (const segment of segments) {
      const response = responseOf(segment);
      if (response !== undefined) {
        service.responses = isNew ? [response] : [...service.responses, response];
        isNew = false;
        continue;
      }
      isNew = true;
      const [word = '', ...words] = segment.split(' ');
      expect(Object.keys(STEPS), written).toContain(word);
      const asked = Promise.resolve().then(() =>
        STEPS[word]?.(world, ...words.map((each) => String(writtenBytes(each)))),
      );
      const result = await asked.then(
        (value) => (Array.isArray(value) ? value.map(resultText) : value === undefined ? [] : [resultText(value)]),
        errorLines,
      );
      const counted = made.events.splice(0).map(({ outcome, bytes }) => {
        // How much came before it was given up is another one in each run.
        return outcome === 'answer-too-large' ? outcome : `${outcome} ${bytes}`;
      });
      const requests = service.asked.splice(0).map((each, at) => `${each}: ${counted[at] ?? 'as before'}`);
      lines.push(...requests, ...counted.slice(requests.length), ...result.map((line) => `= ${line}`));
      // What has no end is closed.
      await until(() => service.open === 0);
      expect(openFilesIn(directory)).toBe(0);
    }
    const kept = [...made.kept].map(([name, value]) => `${name} = ${value}`);
    await server.close();
    const all = [...lines, ...made.changes.map((change) => `changed ${change}`), ...kept];
    return all.map((line) => line.replaceAll(new URL(server.url).host, 'HOST'));
  });
});

test('many jobs are read in slices', async () => {
  const { service, server } = await serve('soap12');
  const rows = Array.from(
    { length: 20_000 },
    (_, id) => `<SubmittedJobInfoExt><id>${id + 1}</id></SubmittedJobInfoExt>`,
  );
  service.responses = [responseOf(`200 jobs12: ${rows.join('')}`) ?? expect.fail()];
  let turns = 0;
  const timer = setInterval(() => {
    turns += 1;
  }, 5);
  const world = { secrets: new Secrets(), nowMs: 0 };
  const jobs = await connect('soap12', '', server.url, world, temporaryDirectory()).jobs.listJobs(signal);
  clearInterval(timer);
  expect(jobs.at(-1)?.id).toBe('20000');
  expect(turns).toBeGreaterThan(2);
});
