/** The contract against the sandbox over REST, as the releases between the main ones have it (docs/dev/rest.md). */
import { contractOf } from '../contract.ts';
import { MAIN_RELEASES, RELEASES, restDialect } from '../service.ts';

const OTHERS = RELEASES.filter((release) => !MAIN_RELEASES.includes(release));

contractOf(OTHERS.map(restDialect));
