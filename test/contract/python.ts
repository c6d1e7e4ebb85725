/** Python programs on zeep and libxml2, which share nothing with the program but the WSDL. */
import { type ChildProcessWithoutNullStreams, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { Operation } from '../../src/operations.ts';
import type { ServiceName } from '../../src/remote/soap/contract.ts';
import { PYTHON } from '../support/needs.ts';
import type { Version } from './service.ts';

/** What libxml2 finds wrong with each request, by the schema in the WSDL; null if nothing. */
export function validateRequests(wsdl: string, requests: readonly string[]): readonly (string | null)[] {
  const input = JSON.stringify({ wsdl, requests });
  return JSON.parse(execFileSync(PYTHON, [pathOf('valid-requests.py')], { input, encoding: 'utf8' }));
}

export interface ZeepCall {
  readonly operation: Operation;
  readonly version: Version;
  /** By the names of docs/dev/soap.md 2; longs as text. */
  readonly fields: Readonly<Record<string, unknown>>;
  readonly headers?: Readonly<Record<string, string>>;
}

/** What came of a call: longs as text, bytes as {base64}. An error is one that zeep or libxml2 found in the answer. */
export interface ZeepOutcome {
  readonly result?: unknown;
  readonly fault?: { readonly code: string; readonly message: string };
  readonly error?: string;
}

/** A SOAP client that is not ours. Its program ends when its input ends, also when the test run is killed. */
export class ZeepClient {
  readonly #child: ChildProcessWithoutNullStreams;
  readonly #service: ServiceName;
  readonly #lines: AsyncIterator<string>;
  #complaints = '';

  /** A client for the service that this WSDL describes. */
  constructor(wsdlUrl: string, service: ServiceName = 'FileTransferWs') {
    this.#service = service;
    this.#child = spawn(PYTHON, [pathOf('zeep-client.py'), wsdlUrl, service]);
    this.#child.stderr.setEncoding('utf8').on('data', (text: string) => {
      this.#complaints += text;
    });
    // If it has ended, its lines end, too: that is noticed where one is waited for.
    this.#child.stdin.on('error', () => undefined);
    this.#lines = createInterface(this.#child.stdout)[Symbol.asyncIterator]();
  }

  /** One call; the next one may begin when it has ended. */
  async call({ operation, version, fields, headers = {} }: ZeepCall): Promise<ZeepOutcome> {
    const port = `${this.#service}${version === '1.1' ? 'Soap' : 'Soap12'}`;
    this.#child.stdin.write(`${JSON.stringify({ port, operation, fields, headers })}\n`);
    const { done, value } = await this.#lines.next();
    if (done === true) throw new Error(`zeep ended: ${this.#complaints}`);
    return JSON.parse(value) as ZeepOutcome;
  }

  async close(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const closed = once(this.#child, 'close');
    this.#child.stdin.end();
    await closed;
  }
}

function pathOf(program: string): string {
  return fileURLToPath(new URL(program, import.meta.url));
}
