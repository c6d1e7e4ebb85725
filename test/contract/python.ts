/** libxml2, which shares nothing with the program but the WSDL. */
import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { PYTHON } from '../support/needs.ts';

const PROGRAM = fileURLToPath(new URL('valid-requests.py', import.meta.url));

/** What libxml2 finds wrong with each request, by the schema in the WSDL; null if nothing. */
export function validateRequests(wsdl: string, requests: readonly string[]): readonly (string | null)[] {
  const input = JSON.stringify({ wsdl, requests });
  return JSON.parse(execFileSync(PYTHON, [PROGRAM], { input, encoding: 'utf8' }));
}
