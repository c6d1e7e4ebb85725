/** The service of the benchmark as a running process. */
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Operation } from '../../src/operations.ts';
import { startProcess } from '../processes.ts';
import { JOB_ID, NAMESPACE } from './job.ts';
import type { ServeOptions } from './serve.ts';

const SERVE = fileURLToPath(new URL('./serve.js', import.meta.url));

export interface Service {
  /** By SOAP; by REST it is at the root of the same server. */
  readonly url: string;
  /** A file with the envelope of a request, and the words of curl that send it. */
  readonly curl: (operation: Operation, fields: string) => string[];
  /** When it was asked for live files: milliseconds since 1970. */
  readonly readAt: () => number[];
  /** What it sent of live files so far, in parts or raw: bytes of the bodies. */
  readonly liveBytes: () => number;
  readonly stop: () => Promise<void>;
}

/** `directory` is where it finds what it is to serve. */
export async function startService(options: ServeOptions, directory: string): Promise<Service> {
  const own = fs.mkdtempSync(path.join(directory, 'service-'));
  const optionsFile = path.join(own, 'options.json');
  fs.writeFileSync(optionsFile, JSON.stringify(options));
  const serving = startProcess(process.execPath, [SERVE, optionsFile]);
  const [, port] = await serving.says(/port (\d+)\n/);
  const url = `http://127.0.0.1:${port}/FileTransferWs`;
  return {
    url,
    curl: (operation, fields) => {
      const file = path.join(own, `${operation}.xml`);
      fs.writeFileSync(file, requestOf(operation, fields));
      const headers = ['-H', 'content-type: text/xml; charset=utf-8', '-H', `SOAPAction: "${NAMESPACE}${operation}"`];
      return ['curl', '--silent', '--fail', ...headers, '--data-binary', `@${file}`, url];
    },
    readAt: () => [...serving.stdout().matchAll(/read (\d+)/g)].map(([, time]) => Number(time)),
    liveBytes: () => [...serving.stdout().matchAll(/live (\d+)/g)].reduce((sum, [, bytes]) => sum + Number(bytes), 0),
    stop: () => serving.stop(),
  };
}

/** The envelope of a request about the one job. */
export function requestOf(operation: Operation, fields: string): string {
  const inner = `<submittedJobInfoId>${JOB_ID}</submittedJobInfoId>${fields}<sessionCode>bench</sessionCode>`;
  return `<?xml version="1.0" encoding="utf-8"?><soap:Envelope xmlns:soap="http://schemas.xmlsoap.org/soap/envelope/"><soap:Body><${operation} xmlns="${NAMESPACE}">${inner}</${operation}></soap:Body></soap:Envelope>`;
}
