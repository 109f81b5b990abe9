"""Pages of other sites are kept away from the management address; programs are not."""

from __future__ import annotations

import pytest

from headway.router.management.origin import ForeignPageError, refuse_foreign_pages


@pytest.mark.parametrize("host", ["127.0.0.1:8080", "localhost:8080", "[::1]:8080", "router:8080", "10.0.0.7"])
def test_programs_and_own_pages_pass(host: str) -> None:
    refuse_foreign_pages({"host": host}, any_host=False)
    refuse_foreign_pages({"host": host, "origin": f"http://{host}"}, any_host=False)


@pytest.mark.parametrize("host", ["[::1", "a]", "[x]:8080"])
def test_a_host_that_is_no_host_does_not_pass(host: str) -> None:
    with pytest.raises(ForeignPageError):
        refuse_foreign_pages({"host": host}, any_host=False)


@pytest.mark.parametrize("origin", ["https://evil.example", "http://127.0.0.1:9999", "null", "", "http://[::1", "127.0.0.1:8080"])
def test_pages_of_other_sites_do_not(origin: str) -> None:
    with pytest.raises(ForeignPageError):
        refuse_foreign_pages({"host": "127.0.0.1:8080", "origin": origin}, any_host=True)


def test_a_name_that_was_pointed_here_does_not_pass_without_tokens() -> None:
    headers = {"host": "evil.example:8080", "origin": "http://evil.example:8080"}
    with pytest.raises(ForeignPageError):
        refuse_foreign_pages(headers, any_host=False)
    refuse_foreign_pages(headers, any_host=True)
