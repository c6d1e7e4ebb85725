/** A way to a server on which what is long stops in the middle, until the test lets it go on. */
import { once } from 'node:events';
import net from 'node:net';
import { pipeline } from 'node:stream/promises';
import { onTestFinished } from 'vitest';

interface HoldingWay {
  readonly port: number;
  readonly goOn: () => void;
}

/** Each connection stops after so many bytes of the server, until `goOn` is called or the test is over. */
export async function holdingWay(serverPort: number, bytes: number): Promise<HoldingWay> {
  let goOn = () => {};
  const goesOn = new Promise<void>((resolve) => {
    goOn = resolve;
  });
  const server = net.createServer((near) => {
    const far = net.connect(serverPort, '127.0.0.1');
    const held = async function* (pieces: AsyncIterable<Buffer>) {
      let passed = 0;
      for await (const piece of pieces) {
        passed += piece.length;
        if (passed > bytes) await goesOn;
        yield piece;
      }
    };
    // Whoever breaks off is noticed at the other end.
    pipeline(near, far).catch(() => {});
    pipeline(far, held, near).catch(() => {});
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  onTestFinished(() => {
    goOn();
    server.close();
  });
  return { port: (server.address() as net.AddressInfo).port, goOn };
}
