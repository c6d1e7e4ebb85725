import { expect, test } from 'vitest';
import { HttpClient, readBody } from '../../../src/remote/http/http-client.ts';
import { startProxy } from '../../support/wire-proxy.ts';
import { answer, closedAtEnd, startHttpServer } from '../../support/wire-server.ts';

const proxyThat = async (asked: string[], status: number) => closedAtEnd(await startProxy(asked, status));

async function fetchFrom(url: string, proxy?: string): Promise<string> {
  const limits = { connectMs: 5000, headersMs: 5000, idleMs: 5000, totalMs: 10_000 };
  const client = closedAtEnd(new HttpClient({ limits, ...(proxy === undefined ? {} : { proxy }) }));
  const got = await client.request({ method: 'GET', url, headers: {}, signal: new AbortController().signal });
  return `${got.status} ${await readBody(got, 1000)}`;
}

const startTarget = async () =>
  closedAtEnd(await startHttpServer((_, response) => answer(response, 200, 'text/plain', 'hello')));

test('a configured proxy is used', async () => {
  const asked: string[] = [];
  const [proxy, target] = [await proxyThat(asked, 200), await startTarget()];
  expect(await fetchFrom(target.url, `http://127.0.0.1:${proxy.port}`)).toBe('200 hello');
  expect(asked).toEqual([`GET ${target.url}`]);
});

test('a proxy of the environment is not used', async () => {
  const asked: string[] = [];
  const [proxy, target] = [await proxyThat(asked, 200), await startTarget()];
  for (const name of ['http_proxy', 'HTTP_PROXY', 'ALL_PROXY']) process.env[name] = `http://127.0.0.1:${proxy.port}`;
  try {
    expect(await fetchFrom(target.url)).toBe('200 hello');
  } finally {
    for (const name of ['http_proxy', 'HTTP_PROXY', 'ALL_PROXY']) Reflect.deleteProperty(process.env, name);
  }
  expect(asked).toEqual([]);
});

test('a proxy that wants a sign-in is named as the failure', async () => {
  const [proxy, target] = [await proxyThat([], 407), await startTarget()];
  const address = `http://127.0.0.1:${proxy.port}`;
  await expect(fetchFrom(target.url, address)).rejects.toMatchObject({
    code: 'unreachable',
    message: `the proxy wants a sign-in to reach 127.0.0.1:${target.port} (status 407)`,
  });
  await expect(fetchFrom(target.url.replace('http:', 'https:'), address)).rejects.toMatchObject({
    code: 'unreachable',
    message: `the proxy refused to connect to 127.0.0.1:${target.port} (status 407)`,
  });
});

test('a proxy that is not there makes the server unreachable', async () => {
  const [proxy, target] = [await proxyThat([], 200), await startTarget()];
  await proxy.close();
  await expect(fetchFrom(target.url, `http://127.0.0.1:${proxy.port}`)).rejects.toMatchObject({ code: 'unreachable' });
});
