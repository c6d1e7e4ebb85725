/** The page: what it shows is behind `#` in its address, what it shows it of comes from `api/` beside it. */
import { render } from 'preact';

render(<h1>jobtail</h1>, document.getElementById('page') as HTMLElement);
