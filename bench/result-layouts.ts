/** One large result file by SOAP and by REST, with the white space that servers write into its base64. */
import type { Goal, Measurement, Side } from './measurement.ts';
import { agent, curl, leastOf, MIB, type ResultService, serveResult, sized } from './result-sides.ts';
import { LAYOUTS, type Layout } from './service/answers.ts';
import { warmDisk } from './warm-disk.ts';

/** As the rows say it; of the plain one by SOAP, the measurement `result` has the row. */
const WORDS: Readonly<Record<Layout, string>> = {
  plain: '',
  'line-feed': ' behind one line feed',
  wrapped: ' in lines of 76 characters, CR LF',
};

const goalsOf = (layout: Layout): Goal[] => {
  const [soap, rest, base64] = [`soap ${layout}`, `rest ${layout}`, `base64 ${layout}`];
  const file = `a 512 MiB result${WORDS[layout]}`;
  const byRest: Goal = {
    kind: 'ratio',
    what: `${file} by REST, against the least code for the same work`,
    ...{ figure: 'seconds', ours: rest, peer: `least ${layout}`, atMost: 1.3 },
  };
  const bySoap: Goal = {
    kind: 'ratio',
    what: `${file} by SOAP, against \`curl\`, cut, \`base64 -d\``,
    ...{ figure: 'seconds', ours: soap, peer: base64, atMost: 0.8 },
  };
  return [
    ...(layout === 'plain' ? [] : [bySoap]),
    ...(layout === 'wrapped' ? [byRest] : []),
    {
      kind: 'ratio',
      what: `${file} by REST, against the same by SOAP`,
      ...{ figure: 'seconds', ours: rest, peer: soap, atMost: 1 },
    },
    { kind: 'limit', what: `peak memory of ${file} by REST`, figure: 'peakBytes', ours: rest, atMost: 160e6 },
  ];
};

export const resultLayouts: Measurement = {
  name: 'result-layouts',
  needs: ['curl', 'base64', 'tail', 'head'],
  goals: LAYOUTS.flatMap(goalsOf),
  prepare: async (place) => {
    const bytes = sized(place.quick ? 24 * MIB : 512 * MIB);
    const services: ResultService[] = [];
    const sides: Record<string, Side> = {};
    for (const layout of LAYOUTS) {
      const service = await serveResult(bytes, layout, place);
      services.push(service);
      sides[`rest ${layout}`] = agent(service, place, 'rest');
      sides[`soap ${layout}`] = agent(service, place);
      if (layout !== 'plain') sides[`base64 ${layout}`] = curl(service, place).decoded;
      if (layout === 'wrapped') sides[`least ${layout}`] = leastOf(service, place, 'rest');
    }
    return {
      sides,
      before: () => warmDisk(place.directory, bytes),
      close: async () => void (await Promise.all(services.map((service) => service.stop()))),
    };
  },
};
