/**
 * The service as the benchmark needs it: it sends prepared answers as fast as the machine can, from a process of its
 * own, the same bytes to whoever asks. `serve.js FILE`, with its options as JSON, prints its port, and the
 * time of every call for live files.
 *
 * A result file called `/BYTES.dat` has so many bytes; live stdout of the one task has `logBytes`, and is listed as
 * `/stdout.txt` if that is among `listed`.
 */
import fs from 'node:fs';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { type Answer, JOB_ID, resultAnswer, small } from './answers.ts';
import { LOG_PATH, LogAnswers, rawLogAnswer } from './log-text.ts';

export interface ServeOptions {
  /** Length of the live stdout; 0 if left out. */
  readonly logBytes?: number;
  /** Names of the results of the one job; others have none. */
  readonly listed?: readonly string[];
  /** The content of GetFileTransferMethodResult. */
  readonly transferMethod?: string;
}

const WRITE_BYTES = 1024 * 1024;

const options = JSON.parse(fs.readFileSync(process.argv[2] ?? '', 'utf8')) as ServeOptions;
const log = new LogAnswers();
const rawLog = rawLogAnswer(options.logBytes ?? 0);

const server = http.createServer({ noDelay: true }, (request, response) => {
  const pieces: Buffer[] = [];
  request.on('data', (bytes: Buffer) => pieces.push(bytes));
  request.on('end', () => {
    send(answerTo(Buffer.concat(pieces).toString()), response).catch(() => response.destroy());
  });
});
server.listen(0, '127.0.0.1', () => process.stdout.write(`port ${(server.address() as AddressInfo).port}\n`));

function answerTo(request: string): Answer {
  const field = (name: string) => new RegExp(`<(?:\\w+:)?${name}>([^<]*)<`).exec(request)?.[1] ?? '';
  const relativePath = field('relativeFilePath');
  if (relativePath === LOG_PATH) return rawLog;
  if (request.includes('DownloadFileFromCluster')) return resultAnswer(Number.parseInt(relativePath.slice(1), 10));
  if (request.includes('DownloadPartsOfJobFilesFromCluster')) process.stdout.write(`read ${Date.now()}\n`);
  if (request.includes('DownloadPartsOfJobFilesFromCluster'))
    return log.answer(options.logBytes ?? 0, Number(field('offset')));
  if (request.includes('ListChangedFilesForJob')) {
    const listed = field('submittedJobInfoId') === JOB_ID ? options.listed : undefined;
    const names = (listed ?? []).map((name) => `<string>${name}</string>`).join('');
    return small('ListChangedFilesForJob', `<ListChangedFilesForJobResult>${names}</ListChangedFilesForJobResult>`);
  }
  if (request.includes('GetFileTransferMethod')) {
    const method = options.transferMethod;
    const result = method === undefined ? '' : `<GetFileTransferMethodResult>${method}</GetFileTransferMethodResult>`;
    return small('GetFileTransferMethod', result);
  }
  return small('EndFileTransfer', '');
}

async function send({ before, block, times, after }: Answer, response: http.ServerResponse): Promise<void> {
  response.writeHead(200, {
    'content-type': 'text/xml; charset=utf-8',
    'content-length': before.length + block.length * times + after.length,
  });
  const write = (bytes: Buffer) => response.write(bytes) || drained(response);
  await write(before);
  for (let time = 0; time < times; time += 1) {
    for (let at = 0; at < block.length; at += WRITE_BYTES) await write(block.subarray(at, at + WRITE_BYTES));
  }
  response.end(after);
}

/** Rejects if the other side is gone. */
function drained(response: http.ServerResponse): Promise<void> {
  return new Promise((resolve, reject) => {
    const close = () => reject(new Error('closed'));
    response.once('drain', () => {
      response.off('close', close);
      resolve();
    });
    response.once('close', close);
  });
}
