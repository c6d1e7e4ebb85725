import { afterEach, expect, test } from 'vitest';
import { HttpClient, readBody } from '../../../src/remote/http/http-client.ts';
import { startProxy } from '../../support/wire-proxy.ts';
import { answer, startHttpServer, type WireServer } from '../../support/wire-server.ts';

const closing: { close(): Promise<void> }[] = [];

afterEach(async () => {
  for (const each of closing.splice(0).reverse()) await each.close();
});

async function proxyThat(asked: string[], status: number): Promise<WireServer> {
  const proxy = await startProxy(asked, status);
  closing.push(proxy);
  return proxy;
}

async function fetchFrom(url: string, proxy?: string): Promise<string> {
  const limits = { connectMs: 5000, headersMs: 5000, idleMs: 5000, totalMs: 10_000 };
  const client = new HttpClient({ limits, ...(proxy === undefined ? {} : { proxy }) });
  closing.push(client);
  const got = await client.request({ method: 'GET', url, headers: {}, signal: new AbortController().signal });
  return `${got.status} ${await readBody(got, 1000)}`;
}

async function startTarget(): Promise<WireServer> {
  const target = await startHttpServer((_, response) => answer(response, 200, 'text/plain', 'hello'));
  closing.push(target);
  return target;
}

test('a configured proxy is used', async () => {
  const asked: string[] = [];
  const [proxy, target] = [await proxyThat(asked, 200), await startTarget()];
  expect(await fetchFrom(target.url, `http://127.0.0.1:${proxy.port}`)).toBe('200 hello');
  expect(asked).toEqual([`GET ${target.url}`]);
});

test('proxy variables are not', async () => {
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

test('a proxy that wants a sign-in', async () => {
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

test('a proxy that is not there', async () => {
  const [proxy, target] = [await proxyThat([], 200), await startTarget()];
  await proxy.close();
  closing.splice(closing.indexOf(proxy), 1);
  await expect(fetchFrom(target.url, `http://127.0.0.1:${proxy.port}`)).rejects.toMatchObject({ code: 'unreachable' });
});
