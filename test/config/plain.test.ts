import { expect, it, onTestFinished, vi } from 'vitest';
import { isPlainDatabase } from '../../src/config/config.ts';

it.each([
  ['postgresql://db.example.org/jobtail', true],
  ['postgresql://u:p@10.0.0.5:5432/jobtail?sslmode=disable', true],
  ['postgresql://db.example.org/jobtail?sslmode=require', false],
  ['postgresql://db.example.org/jobtail?sslmode=verify-full', false],
  ['postgresql://db.example.org/jobtail?ssl=true', false],
  ['postgresql://localhost/jobtail', false],
  ['postgresql://127.0.0.1:5433/jobtail?sslmode=disable', false],
  ['postgresql://[::1]/jobtail', false],
  ['postgresql://db/jobtail?host=::1', false],
  ['postgresql:///jobtail', false],
  ['postgresql://%2Frun%2Fpostgresql/jobtail', false],
  ['postgresql://db/jobtail?host=/run/postgresql', false],
  ['no address', false],
])('the rows of a fleet at %s are sent in plain text: %s', (url, isPlain) => {
  vi.stubEnv('PGSSLMODE', undefined);
  onTestFinished(() => void vi.unstubAllEnvs());
  expect(isPlainDatabase(url)).toBe(isPlain);
});
