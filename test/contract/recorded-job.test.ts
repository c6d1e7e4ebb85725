/**
 * The exchanges of one job that was followed on V6.3.2, replayed through the sign-in and the REST client: each call sends
 * what was recorded, and returns what was recorded. The recording keeps bodies of up to 4,000 characters; of a longer one
 * it has the beginning and the end, and only its request is compared.
 */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { PartRequest } from '../../src/agent/ports/server.ts';
import { loadConfig } from '../../src/config/load.ts';
import { type Connection, connect } from '../../src/daemon/connection.ts';
import type { LiveFileName } from '../../src/job.ts';
import { SILENT } from '../support/errors.ts';
import { directoryOfFile } from '../support/temp-directory.ts';
import { jobId, taskId } from '../support/wire-remote.ts';
import { bodyOf, startHttpServer, type WireServer } from '../support/wire-server.ts';
import { download, readPart } from './contract-place.ts';
import { linesOf } from './recorded/answers.ts';

interface Exchange {
  readonly method: string;
  readonly url: string;
  readonly request: string;
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly answer: string;
}

const EXCHANGES = linesOf<Exchange>('job-6.3.2.jsonl');
const FILES: readonly LiveFileName[] = ['log', 'progress', 'stderr', 'stdout'];
const signal = new AbortController().signal;
const JOB = jobId('4');

/** What the recorded answer says; undefined if only a part of it was recorded. */
function recordedAnswer({ answer }: Exchange): unknown {
  try {
    return JSON.parse(answer);
  } catch {
    return undefined;
  }
}

const operationOf = ({ url }: Exchange) => url.split('?')[0]?.split('/').at(-1) ?? '';

/** Without the session code, and whatever the order of its members. */
function comparable(method: string | undefined, url: string | undefined, body: string) {
  const { pathname, searchParams } = new URL(url ?? '', 'http://x');
  const text = body.replace(/"SessionCode":"[^"]*"/, '"SessionCode":"…"');
  if (searchParams.has('SessionCode')) searchParams.set('SessionCode', '…');
  return { method, pathname, query: Object.fromEntries(searchParams), body: text === '' ? null : JSON.parse(text) };
}

describe('a job that was followed on V6.3.2', () => {
  const directory = directoryOfFile();
  let server: WireServer;
  let connection: Connection | undefined;
  let current: Exchange | undefined;
  let sent: ReturnType<typeof comparable>[] = [];

  beforeAll(async () => {
    server = await startHttpServer(async (request, response) => {
      const body = await bodyOf(request);
      sent.push(comparable(request.method, request.url, body));
      const isWhole = current !== undefined && recordedAnswer(current) !== undefined;
      const empty = current !== undefined && operationOf(current).startsWith('DownloadFile') ? '""' : '[]';
      response.writeHead(current?.status ?? 500, { 'content-type': current?.headers['content-type'] ?? '' });
      response.end(isWhole ? current?.answer : empty);
    });
    await writeFile(join(directory, 'secret'), 'password');
    const service = { protocol: 'rest', baseUrl: new URL(server.url).origin };
    const auth = { method: 'password', username: 'alice', passwordFile: 'secret' };
    const state = { directory: join(directory, 'state') };
    await writeFile(join(directory, 'config.yaml'), JSON.stringify({ service, auth, state }));
  });

  afterAll(async () => {
    await connection?.close();
    await server.close();
  });

  /** The call that the exchange was of, and what it returns in the form of the recorded answer. */
  async function replay(exchange: Exchange, { remote, jobService }: Connection): Promise<unknown> {
    switch (operationOf(exchange)) {
      case 'ListJobsForCurrentUser': {
        const jobs = (await jobService?.listJobs(signal)) ?? [];
        return jobs.map(({ id, name, tasks }) => ({
          Id: Number(id),
          Name: name,
          Tasks: tasks.map((task) => Number(task.id)),
        }));
      }
      case 'ListChangedFilesForJob': {
        const listing = await remote.listChangedFiles(JOB, signal);
        return listing.map((FileName) => ({ FileName, LastModifiedDate: listing.stamps?.get(FileName) }));
      }
      case 'DownloadFileFromCluster': {
        const { RelativeFilePath: path } = JSON.parse(exchange.request) as { RelativeFilePath: string };
        const bytes = await download({ remote, jobId: JOB } as Parameters<typeof download>[0], path);
        return bytes.toString('base64');
      }
      default: {
        const { TaskFileOffsets } = JSON.parse(exchange.request) as { TaskFileOffsets: readonly AskedEntry[] };
        const { parts } = await remote.readParts(JOB, TaskFileOffsets.map(wantedOf), signal);
        return Promise.all(
          parts.map(async (part) => {
            const { text, relativePath, offset, file, taskId: task } = await readPart(part);
            const entry = { Content: text, RelativePath: relativePath, Offset: offset };
            return { ...entry, FileType: FILES.indexOf(file), SubmittedTaskInfoId: Number(task) };
          }),
        );
      }
    }
  }

  it.each(EXCHANGES.map((exchange, index) => [index, operationOf(exchange), exchange] as const))(
    'exchange %i: %s',
    async (_, operation, exchange) => {
      current = exchange;
      sent = [];
      const expected = comparable(exchange.method, exchange.url, exchange.request);
      if (operation === 'AuthenticateUserPassword') {
        // The agent was started, and once more after it was killed.
        await connection?.close();
        connection = await connect(await loadConfig(join(directory, 'config.yaml')), SILENT);
        expect(await connection.session.current(signal)).toEqual({ kind: 'session', code: recordedAnswer(exchange) });
        expect(sent).toEqual([expected]);
        return;
      }
      if (connection === undefined) throw new Error('the first exchange is a sign-in');
      const returned = await replay(exchange, connection);
      expect(sent).toEqual([expected]);
      const recorded = recordedAnswer(exchange);
      if (recorded !== undefined) expect(returned).toEqual(comparedJobs(operation, recorded));
    },
  );
});

interface AskedEntry {
  readonly SubmittedTaskInfoId: number;
  readonly FileType: number;
  readonly Offset: number;
}

function wantedOf({ SubmittedTaskInfoId, FileType, Offset }: AskedEntry): PartRequest {
  const file = FILES[FileType];
  if (file === undefined) throw new Error(`no file has the number ${FileType}`);
  return { taskId: taskId(String(SubmittedTaskInfoId)), file, offset: Offset };
}

/** Of jobs, what `replay` returns. */
function comparedJobs(operation: string, recorded: unknown): unknown {
  if (operation !== 'ListJobsForCurrentUser') return recorded;
  const jobs = recorded as readonly { Id: number; Name: string; Tasks: readonly { Id: number }[] }[];
  return jobs.map(({ Id, Name, Tasks }) => ({ Id, Name, Tasks: Tasks.map((task) => task.Id) }));
}
