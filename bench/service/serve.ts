/**
 * The service as the benchmark needs it: it sends prepared answers as fast as the machine can, from a process of its
 * own, the same bytes to each client, by SOAP and by REST. `serve.js FILE`, with its options as JSON, prints its port, the
 * time of every call for live files, and the bytes that it sent of them, in parts or raw.
 *
 * A result file is what its name says (answers.ts), and comes as gzip where that is requested; live stdout of the one task has `logBytes`, and is listed as
 * `/stdout.txt` if that is among `listed`.
 */
import fs from 'node:fs';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { pipeline, type Writable } from 'node:stream';
import { createGzip } from 'node:zlib';
import { type Answer, resultAnswer, small } from './answers.ts';
import { type Asked, askedBy } from './asked.ts';
import { JOB_ID } from './job.ts';
import { LOG_PATH, LogAnswers, rawLogAnswer } from './log-text.ts';
import { type Protocol, REST_JOB, soapDocument, WRITING } from './protocols.ts';

export interface ServeOptions {
  /** Length of the live stdout; 0 if left out. */
  readonly logBytes?: number;
  /** Names of the results of the one job. */
  readonly listed?: readonly string[];
  /** The content of GetFileTransferMethodResult, by SOAP. */
  readonly transferMethod?: string;
}

const WRITE_BYTES = 1024 * 1024;

const REFUSALS = {
  soap: {
    ...{ status: 500, contentType: 'text/xml; charset=utf-8' },
    body: '<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body><s:Fault><faultcode>s:Server</faultcode><faultstring>the path was not found</faultstring></s:Fault></s:Body></s:Envelope>',
  },
  rest: {
    ...{ status: 400, contentType: 'application/problem+json' },
    body: '{"title":"Invalid Request","status":400,"detail":"Requested path was not found."}',
  },
} as const;

const options = JSON.parse(fs.readFileSync(process.argv[2] ?? '', 'utf8')) as ServeOptions;
const { logBytes = 0, listed = [], transferMethod } = options;
const logs = { soap: new LogAnswers('soap'), rest: new LogAnswers('rest') };
const rawLogs = { soap: rawLogAnswer(logBytes, 'soap'), rest: rawLogAnswer(logBytes, 'rest') };

const server = http.createServer({ noDelay: true }, (request, response) => {
  const pieces: Buffer[] = [];
  request.on('data', (bytes: Buffer) => pieces.push(bytes));
  request.on('end', () => {
    const asked = askedBy(request, Buffer.concat(pieces).toString());
    if (asked === undefined) response.writeHead(404).end();
    else
      send(asked, response, request.headers['accept-encoding'] === 'gzip').catch(() => {
        if (response.headersSent) response.destroy();
        else sendRefusal(response, asked.protocol);
      });
  });
});
server.listen(0, '127.0.0.1', () => process.stdout.write(`port ${(server.address() as AddressInfo).port}\n`));

function answerTo({ operation, protocol, jobId, path, offset }: Asked): Answer {
  const { listing, nothing } = WRITING[protocol];
  switch (operation) {
    case 'DownloadFileFromCluster':
      return path === LOG_PATH ? rawLogs[protocol] : resultAnswer(path, protocol);
    case 'DownloadPartsOfJobFilesFromCluster':
      process.stdout.write(`read ${Date.now()}\n`);
      return logs[protocol].answer(logBytes, offset);
    case 'ListChangedFilesForJob':
      return small(listing(jobId === JOB_ID ? listed : []));
    case 'GetFileTransferMethod': {
      if (transferMethod === undefined) return small(nothing(operation));
      return small(
        soapDocument(operation, `<GetFileTransferMethodResult>${transferMethod}</GetFileTransferMethodResult>`),
      );
    }
    case 'GetCurrentInfoForJob':
      return small(protocol === 'rest' ? REST_JOB : nothing(operation));
    default:
      return small(nothing(operation));
  }
}

async function send(asked: Asked, response: http.ServerResponse, isPacked: boolean): Promise<void> {
  const { before, block, times, after } = answerTo(asked);
  const length = { 'content-length': before.length + block.length * times + after.length };
  response.writeHead(200, {
    'content-type': WRITING[asked.protocol].contentType,
    ...(isPacked ? { 'content-encoding': 'gzip' } : length),
  });
  const gzip = isPacked ? createGzip() : undefined;
  if (gzip !== undefined) pipeline(gzip, response, () => {});
  const body: Writable = gzip ?? response;
  let sentBytes = after.length;
  const write = (bytes: Buffer) => {
    sentBytes += bytes.length;
    return body.write(bytes) || drained(body);
  };
  try {
    await write(before);
    for (let time = 0; time < times; time += 1) {
      for (let at = 0; at < block.length; at += WRITE_BYTES) await write(block.subarray(at, at + WRITE_BYTES));
    }
    body.end(after);
  } finally {
    const isLive = asked.operation === 'DownloadPartsOfJobFilesFromCluster' || asked.path === LOG_PATH;
    if (isLive) process.stdout.write(`live ${sentBytes}\n`);
  }
}

/** A path that names no file, as the agent tries where the listing is not known yet. */
function sendRefusal(response: http.ServerResponse, protocol: Protocol): void {
  const { status, contentType, body } = REFUSALS[protocol];
  response.writeHead(status, { 'content-type': contentType }).end(body);
}

/** Rejects if the other side is gone. */
function drained(response: Writable): Promise<void> {
  return new Promise((resolve, reject) => {
    const close = () => reject(new Error('closed'));
    response.once('drain', () => {
      response.off('close', close);
      resolve();
    });
    response.once('close', close);
  });
}
