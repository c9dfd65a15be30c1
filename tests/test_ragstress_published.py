"""The identities of shared/reference/README.md (RAG-Stress), held to our aggregation: CSV -> answers -> results."""

from functools import cache

import published_ragstress as published
import pytest
from published_ragstress import AUDITED, GRIDS, POLICIES, POSITIONS, SLOTS, by, counted, facts, items, small, table

pytestmark = pytest.mark.skipif(
    not published.REFERENCE.is_dir(), reason="the shared tables are not here: ../shared/reference/rag_stress"
)


def close(rate, printed, within=published.WITHIN):
    """A fraction of ours against a printed percentage."""
    assert abs(100 * rate["estimate"] - printed) <= within + 1e-9, f"{100 * rate['estimate']:.4f}, printed {printed}"


def percent(rate):
    return 100 * rate["estimate"]


# ---------------------------------------------------------------- Tables 1, 13, 14


@cache
def grid(dataset):
    name = GRIDS[dataset]
    return counted(small("ragstress", "grid"), items(1000), published.grid_labels(name), published.models(name))


@pytest.mark.parametrize("dataset", GRIDS)
def test_a_main_table_its_contrasts_and_its_group_means(dataset):
    found, groups = grid(dataset), published.models(GRIDS[dataset])
    assert len(groups) == facts()["systems"]
    for row in table(GRIDS[dataset]):
        average = row["model"] == "Average"
        own = found["groups"][row["group"]] if average else found["systems"][row["model"]]
        ours = own["panels"]["grid"][row["position"]]
        # A system's printed figures are what was counted here; group means and means of places are rounded last.
        exact = 0 if not average and row["position"] != "mean" else published.WITHIN
        close(ours[f"clean_{row['policy']}"], row["clean_acc"], exact)
        close(ours[f"mr_{row['policy']}"], row["mr"], exact)
        if row["position"] == "mean":
            for name in ("clean_delta", "mr_delta"):
                assert own["rates"][name]["estimate"] == pytest.approx(ours[name]["estimate"], abs=1e-12)
    for group in ("api", "open", "rl"):
        members = [model for model, its in groups.items() if its == group]
        assert found["groups"][group]["systems"] == members and len(members) == facts()[f"systems_{group}"]


@pytest.mark.parametrize("dataset", GRIDS)
def test_a_mean_over_systems_weighs_them_equally_and_is_no_mean_of_group_means(dataset):
    found = grid(dataset)
    assert len(found["mean"]["systems"]) == 15
    for policy in POLICIES:
        for place in POSITIONS:
            ours = found["mean"]["panels"]["grid"][place][f"mr_{policy}"]
            own = [each["panels"]["grid"][place][f"mr_{policy}"] for each in found["systems"].values()]
            assert percent(ours) == pytest.approx(sum(map(percent, own)) / 15, abs=1e-9)
            of_groups = [each["panels"]["grid"][place][f"mr_{policy}"] for each in found["groups"].values()]
            # Seven, four and four systems: a third each would be another number.
            assert abs(sum(map(percent, of_groups)) / 3 - percent(ours)) > 1
    short = {"TriviaQA-RC": "triviaqa", "HotpotQA": "hotpotqa", "SearchQA": "searchqa"}[dataset]
    for place in POSITIONS:
        close(found["mean"]["panels"]["grid"][place]["mr_strict"], facts()[f"strict_mr_{place}_{short}"])


#: Computed once from the tables (shared/reference/README.md): soft end, beginning, middle; the gap; and of how many
#: systems each order end > beginning > middle holds, strict and soft.
SUMMARIES = {
    "TriviaQA-RC": ((24.09, 19.96, 19.25), 11.82, (8, 7)),
    "HotpotQA": ((25.92, 22.60, 20.76), 13.50, (8, 9)),
    "SearchQA": ((22.26, 19.29, 16.83), 10.91, (12, 9)),
}


@pytest.mark.parametrize("dataset", GRIDS)
def test_end_exceeds_beginning_exceeds_middle_on_average_but_not_in_every_system(dataset):
    soft, gap, ordered = SUMMARIES[dataset]
    found = grid(dataset)

    def falls(own, policy):
        end, beginning, middle = (percent(own["panels"]["grid"][p][f"mr_{policy}"]) for p in ("end", *POSITIONS[:2]))
        return end > beginning > middle

    assert falls(found["mean"], "strict") and falls(found["mean"], "soft")
    assert tuple(sum(falls(own, p) for own in found["systems"].values()) for p in ("strict", "soft")) == ordered
    for place, printed in zip(("end", "beginning", "middle"), soft, strict=True):
        close(found["mean"]["panels"]["grid"][place]["mr_soft"], printed, 0.005)
    close(found["mean"]["rates"]["mr_delta"], gap, 0.005)
    for own in found["systems"].values():
        assert all(own["panels"]["grid"][place]["mr_delta"]["estimate"] > 0 for place in POSITIONS)


def test_the_headline_gaps():
    gaps = [percent(grid(dataset)["mean"]["rates"]["mr_delta"]) for dataset in GRIDS]
    assert min(gaps) == pytest.approx(facts()["mean_gap_min"], abs=0.05 + 1e-9)
    assert max(gaps) == pytest.approx(facts()["mean_gap_max"], abs=0.05 + 1e-9)


# ---------------------------------------------------------------- Table 4


def test_table_4_on_strata_of_each_system_and_language():
    groups = {m: g for m, g in published.models("table4_medqa").items() if g in ("open", "rl")}
    asked = items(1000) + items(1000, "zh")
    found = counted(small("ragstress", "languages"), asked, published.medqa_labels(groups), groups)
    short = {"english": "en", "chinese": "zh"}
    printed = by("table4_medqa", "language", "model", "policy")
    for row in table("table4_medqa"):
        if row["group"] not in ("open", "rl"):
            continue
        if row["model"] == "Average":
            if row["language"] == "chinese_minus_english":
                ours = found["groups"][row["group"]]["panels"]["languages"]["zh_minus_en"]
                close(ours["clean_strict"], row["clean_acc"])
                close(ours["mr_strict"], row["mr"], 0.1)
            continue
        if row["language"] == "chinese_minus_english":
            ours = found["systems"][row["model"]]["panels"]["languages"]["zh_minus_en"]
        else:
            ours = found["slices"]["language"][short[row["language"]]]["systems"][row["model"]]
        # MR is a count of three times n_K, which has steps of up to 0.09.
        apart = row["policy"] == "delta" or row["language"] == "chinese_minus_english"
        close(ours[f"clean_{row['policy']}"], row["clean_acc"], 0)
        close(ours[f"mr_{row['policy']}"], row["mr"], 0.1 if apart else 0.05)
    for model in groups:
        k = sum(printed[language, model, "strict"]["n_k"] for language in short)
        assert found["systems"][model]["strata"]["k"] == k and found["systems"][model]["strata"]["u"] == 2000 - k
        for language in short.values():
            assert found["slices"]["language"][language]["systems"][model]["mr_delta"]["estimate"] > 0


# ---------------------------------------------------------------- Tables 2, 3, 7


def test_table_2_from_counts_on_k():
    found = counted(small("ragstress"), items(300), published.position_labels())
    names = {
        "end_minus_middle": "last_middle",
        "beginning_minus_middle": "first_middle",
        "beginning_minus_end": "first_last",
    }
    for row in table("table2_position"):
        own = found["systems"][row["dataset_model"]]
        ours = own["panels"]["positions"][row["instruction"]]
        close(ours[names[row["contrast"]]], row["estimate"])
        assert own["strata"]["k"] == row["n_k"] == facts()[f"qa_check_n_k_{row['dataset_model'][-1].lower()}"]
        first_middle, last_middle = ours["first_middle"]["estimate"], ours["last_middle"]["estimate"]
        assert ours["first_last"]["estimate"] == pytest.approx(first_middle - last_middle, abs=1e-12)
        assert set(ours) == set(names.values())


def test_table_3_the_contrast_of_each_version_and_its_change():
    suite = small("ragstress_paraphrase")
    found = counted(suite, items(1000), published.paraphrase_labels())
    assert len(suite.cells) - 1 == facts()["paraphrase_requests_per_question_and_model"]
    fresh = [cell for cell in suite.cells if cell.endswith(("_v1", "_v2"))]
    assert len(fresh) == facts()["paraphrase_new_requests_if_reused"]
    names = {"original": "original", "paraphrase_1": "_v1", "paraphrase_2": "_v2"}
    for row in table("table3_paraphrase"):
        version = names[row["version"]]
        own = found["systems"][row["model"]]
        ours = own["panels"]["versions"][version]
        close(ours["soft"], row["soft_mr"], 0)
        close(ours["strict"], row["strict_mr"], 0)
        # The printed contrasts are of unrounded rates, ours of the displayed ones.
        close(ours["delta"], row["delta"], 0.1)
        close(ours["change"], row["change"], 0.1)
        suffix = "" if version == "original" else version
        assert own["rates"][f"delta{suffix}"]["estimate"] == ours["delta"]["estimate"]
        if suffix:
            original = own["panels"]["versions"]["original"]["delta"]["estimate"]
            assert own["rates"][f"change{suffix}"]["estimate"] == pytest.approx(ours["delta"]["estimate"] - original)


def test_table_7_means_and_deviations_over_seeds_and_the_rank_agreement():
    found = counted(small("ragstress_decoding"), items(published.K), published.decoding_labels())
    printed = by("table7_decoding", "model", "profile", "policy")
    profiles, said = {"sampling": "sampled", "long_generation": "long"}, found["remarks"]
    for (model, profile, policy), row in printed.items():
        close(found["systems"][model]["rates"][f"{profiles[profile]}_{policy}"], row["mr"], 0.1)
        if profile == "sampling" and policy != "delta":
            assert said[f"sd over 5 seeds, {model}, {policy}"] == pytest.approx(row["sd"], abs=0.05)
    deviations = [value for key, value in said.items() if key.startswith("sd over 5 seeds")]
    assert len(deviations) == 6 * 3
    printed_most = facts()["decoding_max_seed_sd"]
    assert max(v for k, v in said.items() if k.endswith(POLICIES)) == pytest.approx(printed_most, abs=0.05)
    (tau,) = (value for key, value in said.items() if key.startswith("Kendall"))
    assert tau == facts()["decoding_kendall_tau"]
    for profile in profiles.values():
        above = [own["rates"][f"{profile}_delta"]["estimate"] > 0 for own in found["systems"].values()]
        assert sum(above) == facts()["decoding_models_positive_delta"] == 6


# ---------------------------------------------------------------- the paired audit (Tables 8 to 11, App. C)


@cache
def audited():
    suite, labels = small("ragstress_slots"), published.audit_labels()
    assert suite.places == SLOTS and {len(own) * 500 for own in labels.values()} == {facts()["audit_calls_per_model"]}
    return counted(suite, items(500), labels)


def test_table_8_hor_on_k_and_bcr_on_u():
    for row in table("table8_audit"):
        own = audited()["systems"][row["model"]]
        ours = own["panels"]["audit"][row["stratum"]]
        for policy in ("soft", "strict", "delta"):
            close(ours[policy], row[policy])
        assert ours["soft"]["n"] == ours["strict"]["n"] == 3 * row["n"]
        assert own["strata"][row["stratum"]] == row["n"]
        k, u = own["strata"]["k"], own["strata"]["u"]
        assert k + u == 500 == own["cells"]["closed"]["labels"]["gold"] + own["cells"]["closed"]["labels"]["neither"]


def test_app_c2_the_interaction_is_of_end_minus_beginning_on_k():
    names = {"strict_end_minus_beginning": "strict", "soft_end_minus_beginning": "soft", "interaction": "interaction"}
    for row in table("appendix_c2_contrasts"):
        ours = audited()["systems"][row["model"]]["panels"]["interaction"]["k"]
        close(ours[names[row["contrast"]]], row["estimate"])
        apart = ours["strict"]["estimate"] - ours["soft"]["estimate"]
        assert ours["interaction"]["estimate"] == pytest.approx(apart, abs=1e-12)


def test_table_9_is_of_all_questions_and_not_hor_minus_bcr():
    arms = {"clean": "clean", "edited": "edited", "edited_minus_clean": "interaction"}
    for row in table("table9_interaction"):
        own = audited()["systems"][row["model"]]["panels"]
        close(own["gold"]["all"][arms[row["arm"]]], row["estimate"])
        hor_less_bcr = percent(own["audit"]["k"]["delta"]) - percent(own["audit"]["u"]["delta"])
        assert abs(percent(own["gold"]["all"]["interaction"]) + hor_less_bcr) > 1


def test_table_10_the_foil_is_hardly_named_without_the_edit():
    for row in table("table10_clean_control"):
        own = audited()["systems"][row["model"]]["panels"]
        ours = own["control"][row["policy"]]
        for column in ("clean", "edited"):
            close(ours[column], row[column])
        close(ours["excess"], row["edited_minus_clean"])
        assert ours["edited"]["estimate"] == own["audit"]["k"][row["policy"]]["estimate"]


def test_table_11_the_common_strata():
    common = audited()["across"]["common"]
    for row in table("table11_common_stratum"):
        close(common["k" if row["stratum"] == "baseline_correct" else "u"][row["model"]], row["estimate"])
    assert set(audited()["remarks"].values()) == {232, 135}
    assert [facts()[f"common_baseline_{name}"] for name in ("correct", "wrong")] == list(audited()["remarks"].values())


def test_app_c3_transitions_over_all_pairs_and_over_pairs_named_when_clean():
    for model, name in zip(AUDITED, ("llama", "qwen"), strict=True):
        panel = audited()["systems"][model]["panels"]["transitions"]
        ours = panel["both"]
        assert ours["of_pairs"]["events"] == ours["of_clean_gold"]["events"] == facts()[f"transitions_{name}"]
        assert ours["of_pairs"]["n"] == facts()[f"transition_pairs_{name}"]
        close(ours["of_pairs"], facts()[f"transition_rate_{name}"])
        close(ours["of_clean_gold"], facts()[f"transition_rate_given_clean_gold_{name}"])
        for column in ("of_pairs", "of_clean_gold"):
            for part in ("events", "n"):
                assert sum(panel[policy][column][part] for policy in POLICIES) == ours[column][part]
